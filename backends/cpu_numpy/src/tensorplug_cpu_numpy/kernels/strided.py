"""Views by strides that NumPy's own functions take longer for."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable, Shape

_PRIORITY = 10
_new = np.ndarray.__new__

Array = np.ndarray[Any, Any]


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    table.add("as_strided", as_strided, priority=_PRIORITY)


def as_strided(
    input: Array,
    size: Shape,
    stride: Shape,
    storage_offset: int,
    layout: Any = None,  # noqa: ARG001  what the derivative needs
) -> Array:
    """Return a view with sizes, strides and offset into the memory that `input` shows.

    ``numpy.lib.stride_tricks.as_strided`` takes several times as long.
    """
    owner = input
    base: Any = input.base
    while base is not None:
        if isinstance(base, np.ndarray):
            owner = base
        base = getattr(base, "base", None)  # NumPy's as_strided puts an object in between
    itemsize = input.itemsize
    if not owner.flags.c_contiguous:
        # What owns memory may lie in it in any order of dimensions, and with gaps if it came from elsewhere.
        steps = zip(owner.shape, owner.strides, strict=True)
        reach = sum([(n - 1) * step for n, step in steps]) // owner.itemsize + 1
        owner = np.lib.stride_tricks.as_strided(owner, (reach,), (owner.itemsize,))
    if 0 in size:
        return owner.reshape(-1)[:0].view(input.dtype).reshape(size)
    last = storage_offset + sum([(n - 1) * s for n, s in zip(size, stride, strict=True)])
    if storage_offset < 0 or (last + 1) * itemsize > owner.nbytes:
        raise RuntimeError(
            f"as_strided(): setStorage: sizes {list(size)}, strides {list(stride)}, storage offset "
            f"{storage_offset}, and itemsize {itemsize} requiring a storage size of "
            f"{(last + 1) * itemsize} are out of bounds for storage of size {owner.nbytes}"
        )
    bytes_apart = tuple([step * itemsize for step in stride])
    return _new(np.ndarray, size, input.dtype, owner, storage_offset * itemsize, bytes_apart)
