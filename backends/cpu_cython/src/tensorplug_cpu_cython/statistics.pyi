from collections.abc import Callable
from typing import Any

VARIANCE: int
DEVIATION: int
NORM1: int
NORM2: int

def reduce(
    input: Any, kind: int, dim: tuple[int, ...], correction: float, keepdim: bool
) -> Any: ...

class Norm:
    def __init__(self, fallback: Callable[..., Any]) -> None: ...
    def call(self, input: Any, ord: float, dim: tuple[int, ...], keepdim: bool) -> Any: ...
