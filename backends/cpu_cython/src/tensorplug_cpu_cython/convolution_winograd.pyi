from typing import Any

class Convolution:
    def __init__(
        self,
        shape: tuple[int, ...],
        result: tuple[int, ...],
        size: int,
        padding: tuple[int, ...],
        adjoint: bool,
    ) -> None: ...
    @property
    def pays(self) -> bool: ...
    def __call__(self, images: Any, weight: Any, bias: Any = ...) -> Any: ...

class WeightGradient:
    def __init__(
        self, shape: tuple[int, ...], result: tuple[int, ...], size: int, padding: tuple[int, ...]
    ) -> None: ...
    @property
    def pays(self) -> bool: ...
    def __call__(self, images: Any, gradient: Any) -> Any: ...
