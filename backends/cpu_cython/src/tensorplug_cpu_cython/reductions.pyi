from collections.abc import Callable
from typing import Any

SUM: int
MAX: int
MIN: int
PROD: int
NANSUM: int

class Reduction:
    def __init__(
        self,
        kind: int,
        fallback: Callable[..., Any] | None = None,
        is_mean: bool = False,
        of_truth: bool = False,
    ) -> None: ...
    def call(self, input: Any, dim: Any, keepdim: bool) -> Any: ...
    def count(self, input: Any, dim: Any) -> Any: ...

class Place:
    def __init__(self, kind: int, fallback: Callable[..., Any]) -> None: ...
    def call(self, input: Any, dim: int | None, keepdim: bool) -> Any: ...

class Extreme:
    def __init__(self, kind: int, fallback: Callable[..., Any]) -> None: ...
    def call(self, input: Any, dim: int, keepdim: bool) -> tuple[Any, Any]: ...

def types_of(kind: int) -> tuple[int, ...]: ...
def places_types() -> tuple[int, ...]: ...
