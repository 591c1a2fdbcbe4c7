from collections.abc import Sequence
from typing import Any, TypeAlias

RELU: int
CLIP: int
HARDSWISH: int
SWISH: int
HARDSIGMOID: int
TANH: int
LOGISTIC: int
ADD: int
DEPTHWISE: int
MAX: int
MEAN: int
MEAN_WITHOUT_PADDING: int

class Unsupported(Exception): ...

Ints: TypeAlias = tuple[int, ...]

class Network:
    def input(self, shape: Ints, strides: Ints) -> int: ...
    def convolution(
        self,
        source: int,
        shape: Ints,
        weight: Any,
        bias: Any,
        result: Ints,
        stride: Ints,
        padding: Ints,
        dilation: Ints,
        groups: int,
        posts: list[tuple[int, float, float, int, bool]],
        depthwise: tuple[Any, ...] = ...,
    ) -> int: ...
    def linear(self, source: int, rows: int, weight: Any, bias: Any) -> int: ...
    def pool(
        self,
        source: int,
        kind: int,
        shape: Ints,
        result: Ints,
        kernel: Ints,
        stride: Ints,
        padding: Ints,
        dilation: Ints,
    ) -> int: ...
    def function(self, source: int, kind: int, alpha: float, beta: float) -> int: ...
    def sum(self, source: int, other: int) -> int: ...
    def output(self, source: int, shape: Ints, strides: Ints) -> None: ...
    def finish(self) -> None: ...
    def implementations(self) -> list[str]: ...
    def __call__(self, arrays: Sequence[Any]) -> list[Any] | None: ...
