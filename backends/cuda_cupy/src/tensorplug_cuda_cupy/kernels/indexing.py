"""Accumulation at positions, for every dtype: CuPy's ``ufunc.at`` takes few, and has no products.

Sums of floating-point numbers that meet at one place are added in no particular order, and of numbers that
are written to one place any may stay, unless determinism is wanted: then positions are sorted first.
Positions that are not there are left out, since an error would have to wait for the device.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable, deterministic_wanted

from .. import sources
from .._cupy import address, cp
from ..dtypes import BFLOAT16, name_of

_WAYS = {"sum": 0, "mean": 0, "prod": 1, "amax": 2, "amin": 3, "last": 4}


def build(table: KernelTable, complex_products: Any) -> None:
    """Add these kernels to `table`, above the shared ones.

    Parameters
    ----------
    complex_products : callable
        The kernel of ``scatter_reduce`` for products of complex numbers, which no atomic operation has.
    """

    def reduce(
        input: Any, dim: int, index: Any, src: Any, way: str, own: bool, out: Any = None
    ) -> Any:
        if way == "prod" and input.dtype.kind == "c":
            return _written(complex_products(input, dim, index, src, way, own), out)
        return scatter_reduce(input, dim, index, src, way, own, out)

    def scatter(
        input: Any, dim: int, index: Any, src: Any, way: str | None, out: Any = None
    ) -> Any:
        if way is not None:
            names = {"add": "sum", "multiply": "prod"}
            return reduce(input, dim, index, src, names.get(way, way), True, out)
        result = _target(input, out)
        if index.size:
            flat = _flat(result)
            places, values = (
                _flat_indices(result.shape, dim, index),
                _spread(src, index.shape, result.dtype),
            )
            if deterministic_wanted():
                combine(flat, places, values, "last")
            else:
                flat[places] = values
            _put_back(result, flat)
        return result

    table.add("scatter_reduce", reduce, out=True, priority=2)
    table.add("scatter", scatter, out=True, priority=2)
    table.add("scatter_add", scatter_add, out=True, priority=2)
    table.add("index_put", index_put, out=True, priority=2)


def scatter_add(input: Any, dim: int, index: Any, src: Any, out: Any = None) -> Any:
    """Return `input` with values added at positions along a dimension."""
    return scatter_reduce(input, dim, index, src, "sum", True, out)


def scatter_reduce(
    input: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool, out: Any = None
) -> Any:
    """Return `input` with values combined at positions along a dimension."""
    result = _target(input, out)
    if not index.size:
        return result
    flat = _flat(result)
    places = _flat_indices(result.shape, dim, index)
    if not include_self:
        flat[places] = _neutral(flat.dtype, reduce)
    combine(flat, places, _spread(src, index.shape, flat.dtype), reduce)
    if reduce == "mean":
        count = cp.full(flat.shape, int(include_self), np.int64)
        combine(count, places, cp.ones(places.shape, np.int64), "sum")
        cp.maximum(count, 1, out=count)
        if flat.dtype.kind in "iu":
            flat = flat // count.astype(flat.dtype)
        else:
            flat = (flat / count).astype(flat.dtype)
    _put_back(result, flat)
    return result


def index_put(
    input: Any, indices: list[Any], values: Any, accumulate: bool, out: Any = None
) -> Any:
    """Return `input` with values written or added at index arrays."""
    result = _target(input, out)
    key = tuple([slice(None) if item is None else item for item in indices])
    if not accumulate and not deterministic_wanted():
        result[key] = values
        return result
    if not result.size:
        return result
    if accumulate and len(indices) == 1:  # whole rows of the first dimension
        width = math.prod(result.shape[1:])
        flat = _flat(result)
        rows = _dense(indices[0].astype(np.int64, copy=False)).reshape(-1)
        spread = _spread(values, (*indices[0].shape, *result.shape[1:]), flat.dtype)
        combine_rows(flat, rows, spread, width, result.shape[0])
    else:
        # Where each element of the result stands, looked up in the same way, is where its values go.
        numbers = cp.arange(result.size, dtype=np.int64).reshape(result.shape)
        places = numbers[key]
        flat = _flat(result)
        spread = _spread(values, places.shape, flat.dtype)
        combine(flat, _dense(places).reshape(-1), spread, "sum" if accumulate else "last")
    _put_back(result, flat)
    return result


# --- the kernels in CUDA ------------------------------------------------------------------------


def combine(flat: Any, places: Any, values: Any, way: str) -> None:
    """Combine ``values[i]`` into ``flat[places[i]]``."""
    _through_float32(flat, values, way, places, 1, flat.size)


def combine_rows(flat: Any, rows: Any, values: Any, width: int, size: int) -> None:
    """Add the row ``values[i]`` to row ``rows[i]`` of `size` rows of `width` elements."""
    if width:
        _through_float32(flat, values, "sum", rows, width, size, wraps=True)


def _through_float32(
    flat: Any, values: Any, way: str, places: Any, width: int, size: int, wraps: bool = False
) -> None:
    """Launch a kernel; half precision adds and multiplies up in float32, as on the CPU."""
    if not values.size:
        return
    half = way in ("sum", "mean", "prod") and (flat.dtype == BFLOAT16 or flat.dtype == np.float16)
    target = flat.astype(np.float32) if half else flat
    given = values.astype(np.float32) if half else values
    parts = 2 if flat.dtype.kind == "c" else 1
    name = name_of(target)
    name = {"complex64": "float32", "complex128": "float64"}.get(name, name)
    arguments: tuple[Any, ...]
    extents = (np.int64(places.size), np.int64(width), np.int64(size))
    rounds = way in ("sum", "mean", "prod") and target.dtype.kind in "fc"
    if way == "last" or (rounds and deterministic_wanted()):
        if wraps:
            places = cp.where(places < 0, places + size, places)
        order = cp.argsort(places, kind="stable").astype(np.int64, copy=False)
        kernel, arguments = "accumulate_sorted", (target, places[order], order, given, *extents)
    else:
        kernel, arguments = "accumulate", (target, places, given, *extents, np.int32(wraps))
    blocks = sources.blocks_for(given.size * parts)
    sources.launch("indexing", kernel, name, blocks, arguments, WAY=_WAYS[way], PARTS=parts)
    if half:
        flat[...] = target.astype(flat.dtype)


# --- arrays -------------------------------------------------------------------------------------


def _dense(array: Any) -> Any:
    return cp.ascontiguousarray(array)


def _target(input: Any, out: Any) -> Any:
    if out is None:
        return cp.array(input, order="C", copy=True)
    if out is not input:
        out[...] = input
    return out


def _written(result: Any, out: Any) -> Any:
    if out is None:
        return result
    out[...] = result
    return out


def _flat(result: Any) -> Any:
    """Return the elements row by row: the memory itself if they lie so."""
    return _dense(result).reshape(-1)


def _put_back(result: Any, flat: Any) -> None:
    """Write what was computed in :func:`_flat`'s array; nothing to do if that was the memory itself."""
    if flat.size and address(flat) != address(result):
        result[...] = flat.reshape(result.shape)


def _spread(values: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return values broadcast to a shape, row by row."""
    return _dense(cp.broadcast_to(cp.asarray(values, dtype), shape)).reshape(-1)


def _flat_indices(shape: tuple[int, ...], dim: int, index: Any) -> Any:
    """Return where in the flattened array the positions along `dim` are."""
    if not shape:
        return cp.zeros(index.size, np.int64)
    places: Any = 0
    step = 1
    for d in range(len(shape) - 1, -1, -1):
        if d == dim:
            size = shape[d]
            along = cp.where(index < 0, index + size, index)
        else:
            along = cp.arange(index.shape[d], dtype=np.int64)
            along = along.reshape([-1 if n == d else 1 for n in range(index.ndim)])
        places = places + along * step
        step *= shape[d]
    return _dense(cp.broadcast_to(places, index.shape)).reshape(-1)


def _neutral(dtype: Any, reduce: str) -> Any:
    """Return the number that changes nothing in a reduction."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    highest = reduce == "amin"
    if dtype.kind == "b":
        return highest
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return limits.max if highest else limits.min
    return cp.asarray(np.array(np.inf if highest else -np.inf, dtype))
