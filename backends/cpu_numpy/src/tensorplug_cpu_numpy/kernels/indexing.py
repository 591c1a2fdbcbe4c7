"""Accumulation by ways of NumPy's and SciPy's own that are faster than the shared ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable

_PRIORITY = 10
# Fewer elements than this are added one by one sooner than a sparse matrix is built.
_FEW = 4096

Array = np.ndarray[Any, Any]


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    table.add("index", index, priority=_PRIORITY)
    table.add("index_put", index_put, out=True, priority=_PRIORITY)
    table.add("index_select", index_select)


def index(input: Array, indices: list[Any]) -> Any:
    """Return the elements at index arrays; along one dimension ``take`` is the shorter way."""
    try:
        places = [d for d, item in enumerate(indices) if item is not None]
        if len(places) == 1:
            return input.take(indices[places[0]], places[0])
        return input[tuple([slice(None) if item is None else item for item in indices])]
    except IndexError as error:
        said = str(error).replace("axis", "dimension")
        if "empty axes" in said:
            said = "index is out of bounds for dimension with size 0"
        raise IndexError(said) from None


def index_select(input: Array, dim: int, index: Array) -> Any:
    """Return the slices at positions along a dimension, of which negative ones do not exist."""
    if index.size and (least := index.min()) < 0:
        raise IndexError(
            f"index {least} is out of bounds for dimension {dim} with size {input.shape[dim]}"
        )
    try:
        return input.take(index, dim)
    except IndexError as error:
        raise IndexError(str(error).replace("axis", "dimension")) from None


def index_put(
    input: Array, indices: list[Any], values: Array, accumulate: bool, out: Array | None = None
) -> Array:
    """Return `input` with values written or added at index arrays."""
    if out is None:
        out = np.array(input, order="C", copy=True)
    elif out is not input:
        out[...] = input
    key: Any = tuple([slice(None) if item is None else item for item in indices])
    try:
        if not accumulate:
            out[key] = values
        elif not indices:
            out += values
        elif not _add_rows(out, indices, values):
            np.add.at(out, key, values)
    except IndexError as error:
        raise IndexError(str(error).replace("axis", "dimension")) from None
    return out


def _add_rows(out: Array, indices: list[Any], values: Array) -> bool:
    """Add values to rows of `out`, several of them to one row, by a product with a sparse matrix.

    Serves index arrays of the first dimensions, or one of any dimension; return whether it did.
    """
    places = [d for d, item in enumerate(indices) if item is not None]
    first = places[0]
    half = out.dtype.itemsize == 2 and out.dtype.kind not in "iub"
    if len(places) == 1:
        rows = indices[first]
        sizes = [out.shape[first]]
        target = np.moveaxis(out, first, 0) if first else out
    elif first == 0 and len(places) == len(indices) and out.flags.c_contiguous:
        rows = None
        sizes = list(out.shape[: len(places)])
        target = out.reshape(math.prod(sizes), *out.shape[len(places) :])
    else:
        return False
    common = np.broadcast_shapes(*[indices[d].shape for d in places])
    count = math.prod(common)
    rest = math.prod(target.shape[1:])
    if (count * rest < _FEW and not half) or not count or not rest or out.dtype.kind == "b":
        return False
    flat: Any = 0
    for d, size in zip(places, sizes, strict=True):
        index = indices[d]
        low, high = int(index.min()), int(index.max())
        if low < -size or high >= size:
            return False  # the plain way finds out which one it is
        flat = flat * size + (index if low >= 0 else np.where(index < 0, index + size, index))
    rows = np.broadcast_to(flat, common).reshape(-1)
    shape = (*target.shape[1 : first + 1], *common, *target.shape[first + 1 :])
    given = np.broadcast_to(values, shape)
    if first:
        spread = tuple(range(first, first + len(common)))
        given = np.moveaxis(given, spread, range(len(common)))
    given = given.reshape(count, rest)
    if half:
        given = given.astype(np.float32)
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    ones = np.ones(count, given.dtype)
    ends = np.append(starts, count)
    from scipy.sparse import csr_matrix  # 100 ms at the first use, not at the first op

    sums = csr_matrix((ones, order, ends), (len(starts), count)) @ given
    touched = ordered[starts]
    sums = sums.reshape(len(starts), *target.shape[1:])
    if half:
        sums += target[touched].astype(np.float32)
        target[touched] = sums
    else:
        target[touched] += sums
    return True
