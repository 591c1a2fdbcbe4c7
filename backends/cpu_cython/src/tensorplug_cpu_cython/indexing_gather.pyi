from collections.abc import Callable
from typing import Any

ADD: int
MULTIPLY: int
MAXIMUM: int
MINIMUM: int

def zeros(shape: tuple[int, ...], descriptor: Any) -> Any: ...
def gather_kernel(fallback: Callable[..., Any]) -> Callable[..., Any]: ...
def scatter(
    input: Any, dim: int, index: Any, src: Any, fallback: Callable[..., Any], out: Any = None
) -> Any: ...
def combine(
    input: Any,
    dim: int,
    index: Any,
    src: Any,
    way: int,
    fallback: Callable[..., Any],
    out: Any = None,
) -> Any: ...
def gathered_sum(
    g: Any, shape: tuple[int, ...], dim: int, index: Any, fallback: Callable[..., Any]
) -> Any: ...
def place(input: Any, shape: tuple[int, ...], key: tuple[Any, ...]) -> Any: ...
