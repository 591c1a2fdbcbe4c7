from typing import Any

def grid_sample(
    input: Any, grid: Any, mode: str, padding_mode: str, align_corners: bool
) -> Any: ...
def grid_sampler_backward(
    g: Any, input: Any, grid: Any, mode: str, padding_mode: str, align_corners: bool
) -> tuple[Any, Any]: ...
def im2col(
    input: Any,
    kernel_size: tuple[int, ...],
    dilation: tuple[int, ...],
    padding: tuple[int, ...],
    stride: tuple[int, ...],
) -> Any: ...
def col2im(
    input: Any,
    output_size: tuple[int, ...],
    kernel_size: tuple[int, ...],
    dilation: tuple[int, ...],
    padding: tuple[int, ...],
    stride: tuple[int, ...],
) -> Any: ...
