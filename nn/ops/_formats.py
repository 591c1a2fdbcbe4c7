"""In which order of memory the results of layers for images are."""

from __future__ import annotations

from typing import Any

from tensorplug.core.tensor.layout import contiguous_format, is_dense, suggested_format
from tensorplug.core.tensor.shapes import Shape


def channels_last(shape: Shape, strides: Shape) -> bool:
    """Return whether (N, C, *spatial) lies in memory with the channels of a place beside each other.

    Images of two or three dimensions may have gaps, as in torch.
    """
    dims = [dim for dim in (0, *range(2, len(shape)), 1) if shape[dim] != 1]
    steps = [strides[dim] for dim in dims]
    in_rows = dims == sorted(dims)
    if in_rows or steps != sorted(steps, reverse=True):
        return False
    return is_dense(shape, strides) or suggested_format(shape, strides) is not contiguous_format


def formatted(result: Any, image: Any) -> Any:
    """Return a result channels last if an image is, else row by row."""
    if not channels_last(image._shape, tuple(image.stride())):
        return result.contiguous()
    last = len(result._shape) - 1
    return result.movedim(1, last).contiguous().movedim(last, 1)
