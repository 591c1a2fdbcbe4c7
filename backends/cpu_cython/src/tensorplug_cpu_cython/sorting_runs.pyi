from typing import Any

def unique_consecutive(
    input: Any, return_inverse: bool, return_counts: bool, dim: int | None
) -> Any: ...
