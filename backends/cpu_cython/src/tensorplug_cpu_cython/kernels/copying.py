"""Kernels that copy and convert."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorplug.plugin import DType, KernelTable, complex32

from .. import copying, pointwise
from .._dtypes import NATIVES
from ..below import below
from ..pointwise_regions import with_loop

_HALF, _SINGLE, _DOUBLE = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
_COMPLEX_SINGLE = np.dtype(np.complex64)
_PAIR = np.dtype([("re", _HALF), ("im", _HALF)])  # complex32, which NumPy has no numbers for


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    table.add("clone", pointwise.clone)
    table.add("clone_strided", copying.clone_strided)
    table.add("copy", pointwise.copy, out=True)

    cast_below = below("cast")

    @table.kernel()
    def cast(input: Any, dtype: DType) -> Any:
        native = NATIVES.get(dtype)
        if native is None:
            if dtype is complex32:
                return _pairs(input)
            return cast_below(input, dtype)  # floats of eight bits have no loops here
        given = input.dtype
        if given.kind == "c" and native.kind not in "cb":
            input = pointwise.cast(input, _SINGLE if given.itemsize == 8 else _DOUBLE)
            given = input.dtype
            if given is native:
                return input
        # NumPy converts half precision one by one; by way of float32 each of these is rounded once, too.
        if given is not native and (
            (given is _HALF and native is not _SINGLE)
            or (native is _HALF and given is not _SINGLE and given is not _DOUBLE)
        ):
            input = pointwise.cast(input, _SINGLE)
        return pointwise.cast(input, native)

    with_loop(cast, lambda *arguments: (pointwise.cast, arguments[:1], ()))

    @table.kernel("cast", dtypes=(complex32,))
    def cast_pairs(input: Any, dtype: DType) -> Any:
        if dtype is complex32:
            return clone_pairs(input)
        native = NATIVES.get(dtype)
        if native is None:
            return cast_below(input, dtype)
        if native.kind not in "cb":
            return cast(input["re"], dtype)
        wide = _seen_as(pointwise.cast(_parts(input, _HALF), _SINGLE), _COMPLEX_SINGLE)
        return wide if native is _COMPLEX_SINGLE else pointwise.cast(wide, native)

    @table.kernel("clone", dtypes=(complex32,))
    def clone_pairs(input: Any) -> Any:
        return np.array(input.view(np.uint32), order="C").view(_PAIR)


def _parts(input: Any, part: np.dtype[Any]) -> Any:
    """Return a view with real and imaginary parts along a last dimension."""
    return input[..., None].view(part)


def _seen_as(parts: Any, pair: np.dtype[Any]) -> Any:
    """Return a view of parts, that lie along the last dimension, as the numbers that they are of."""
    if parts.strides[-1] != parts.itemsize:
        parts = np.ascontiguousarray(parts)
    return parts.view(pair)[..., 0]


def _pairs(input: Any) -> Any:
    """Return numbers as pairs of halves."""
    if input.dtype.kind == "c":
        return _seen_as(_halves(_parts(input, input.real.dtype)), _PAIR)
    # On little-endian machines the imaginary half lies in the upper bits: it becomes zero.
    return _halves(input).view(np.uint16).astype(np.uint32).view(_PAIR)


def _halves(input: Any) -> Any:
    """Return real numbers as float16, each rounded once."""
    if input.dtype is not _SINGLE and input.dtype is not _DOUBLE:
        input = pointwise.cast(input, _SINGLE)
    return pointwise.cast(input, _HALF)
