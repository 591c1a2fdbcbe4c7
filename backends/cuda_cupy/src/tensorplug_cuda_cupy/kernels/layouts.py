"""Images, (samples, channels, *spatial), whose channels lie outside or inside."""

from __future__ import annotations

import math
from typing import Any

from tensorplug.plugin import Shape
from tensorplug.plugin.array_kernels.joining import lies_channels_last

from .._cupy import cp

_INT_MAX = 2**31 - 1


def dense(array: Any) -> Any:
    """Return an array without gaps, its channels outside or inside: as torch has it, where there are gaps."""
    if array.flags.c_contiguous or channels_last(array):
        return array
    if lies_channels_last(array):
        return cp.moveaxis(cp.ascontiguousarray(cp.moveaxis(array, 1, -1)), -1, 1)
    return cp.ascontiguousarray(array)


def channels_last(array: Any) -> bool:
    """Return whether the channels of one position lie together, and nothing is between positions."""
    return array.ndim > 2 and cp.moveaxis(array, 1, -1).flags.c_contiguous


def like(array: Any, other: Any) -> Any:
    """Return an array whose channels lie where those of `other`, which is dense, do."""
    if other.flags.c_contiguous:
        return cp.ascontiguousarray(array)
    if channels_last(array):
        return array
    copy = empty_like(other, array.shape, array.dtype)
    copy[...] = array
    return copy


def empty_like(array: Any, shape: Shape, dtype: Any = None) -> Any:
    """Return a new array whose channels lie where those of another, which is dense, do."""
    dtype = array.dtype if dtype is None else dtype
    if array.flags.c_contiguous:
        return cp.empty(shape, dtype)
    return cp.moveaxis(cp.empty((shape[0], *shape[2:], shape[1]), dtype), -1, 1)


def is_wide(*shapes: Shape) -> int:
    """Return 1 if elements' numbers need 64 bits, for the macro WIDE of the sources, else 0."""
    # The grid goes beyond the last element by less than a block for each of its blocks.
    return int(max([math.prod(shape) for shape in shapes]) > _INT_MAX - (1 << 25))
