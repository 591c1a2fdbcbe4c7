from collections.abc import Sequence
from typing import Any

ARRAYS: int
CALLS: int
DIMS: int

class Tiles:
    def __init__(
        self,
        shape: tuple[int, ...],
        order: tuple[int, ...],
        inputs: list[tuple[int, tuple[int, ...]]],
        outputs: list[tuple[int, tuple[int, ...]]],
        calls: list[tuple[int, tuple[float, ...], tuple[int, ...]]],
        between: list[tuple[int, int]],
        grain: int,
    ) -> None: ...
    def __call__(self, arrays: Sequence[Any]) -> list[Any]: ...
