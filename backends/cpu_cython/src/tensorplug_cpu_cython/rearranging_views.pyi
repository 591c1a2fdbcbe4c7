from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]
Ints: TypeAlias = tuple[int, ...]

class Views:
    def __init__(
        self, sources: list[tuple[Ints, Ints]], views: list[tuple[int, int, Ints, Ints]]
    ) -> None: ...
    def __call__(self, arrays: Sequence[Array]) -> list[Array] | None: ...
