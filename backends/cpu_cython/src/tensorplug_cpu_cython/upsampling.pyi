from typing import Any

def interpolate(
    input: Any,
    size: tuple[int, ...],
    scale_factor: tuple[float, ...] | None,
    mode: str,
    align_corners: bool,
    antialias: bool,
) -> Any: ...
def interpolate_backward(
    grad_output: Any,
    input_size: tuple[int, ...],
    scale_factor: tuple[float, ...] | None,
    mode: str,
    align_corners: bool,
    antialias: bool,
) -> Any: ...
