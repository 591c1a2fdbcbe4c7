from typing import Any

def grid_sample(
    input: Any, grid: Any, mode: str, padding_mode: str, align_corners: bool
) -> Any: ...
