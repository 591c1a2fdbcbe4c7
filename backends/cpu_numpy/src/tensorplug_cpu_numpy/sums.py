"""Sums over any dimensions, as exact as NumPy's along a row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

# NumPy adds up pairs of parts along the dimension whose elements lie behind each other; along any other it
# adds one after the other, and the error grows with their number (Higham, "The accuracy of floating point
# summation", SIAM J. Sci. Comput. 14, 1993). Such sums are made of blocks, which are added up in double.
_SMALL = 4096
_FEW = 256
_BLOCK = 128

_reduce: Any = np.add.reduce


def total(
    array: Array, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False
) -> Any:
    """Return the sum over some dimensions, as ``numpy.add.reduce``."""
    if array.size < _SMALL or dtype is not None or axis is None or array.dtype.kind not in "fc":
        return _reduce(array, axis, dtype, out, keepdims)
    dims = {d % array.ndim for d in (axis if isinstance(axis, tuple) else (axis,))}
    longest = _longest(array, dims)
    if longest is None:
        return _reduce(array, axis, None, out, keepdims)
    return _by_blocks(array, dims, longest, keepdims)


def _longest(array: Array, dims: set[int]) -> int | None:
    """Return the longest dimension along which sums are to be made of blocks; None if NumPy's are right."""
    shape, itemsize = array.shape, array.itemsize
    if len(dims) == array.ndim and array.flags.forc:
        return None
    one_by_one = {d for d in dims if array.strides[d] != itemsize}
    if math.prod([shape[d] for d in one_by_one]) < _FEW:
        return None
    return max(one_by_one, key=lambda d: shape[d])


def _by_blocks(array: Array, dims: set[int], longest: int, keepdims: bool) -> Any:
    shape = array.shape
    size = shape[longest]
    others = math.prod([shape[d] for d in dims if d != longest])
    block = max(1, _BLOCK // max(1, others))
    blocks = size // block
    rest = [slice(None)] * array.ndim
    rest[longest] = slice(0, blocks * block)
    split = (*shape[:longest], blocks, block, *shape[longest + 1 :])
    within = (longest + 1, *[d + (d > longest) for d in dims if d != longest])
    parts = _reduce(array[tuple(rest)].reshape(split), within, None, None, True)
    wide = np.result_type(array.dtype, np.float64)
    sums = _reduce(parts, longest, wide)
    if blocks * block < size:
        rest[longest] = slice(blocks * block, size)
        sums += _reduce(array[tuple(rest)], tuple(dims), None, None, True)
    sums = sums.astype(array.dtype, copy=False)
    return sums if keepdims else sums.squeeze(tuple(dims))
