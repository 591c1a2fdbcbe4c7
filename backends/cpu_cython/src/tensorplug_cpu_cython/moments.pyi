from typing import Any

VARIANCE: int
DEVIATION: int
NORM1: int
NORM2: int

def reduce(
    input: Any, kind: int, dim: tuple[int, ...], correction: float, keepdim: bool
) -> Any: ...
