"""Where the elements of sparse tensors are: in which order, each once, and as other layouts have them."""

from __future__ import annotations

import math
from typing import Any

from tensorplug.core.device.dtypes import BOOL, int64
from tensorplug.core.ops import arange, searchsorted, stack, zeros
from tensorplug.core.tensor.shapes import Shape

from .ops.sparse import rows_of
from .tensors import CooTensor, CsrTensor


def flat_places(indices: Any, shape: Shape) -> Any:
    """Return the number of each place, row by row; indices (dims, nnz), shape of these dims."""
    if not shape:
        return zeros(indices._shape[1], dtype=int64, device=indices.device)
    flat = indices[0]
    for dim in range(1, len(shape)):
        flat = flat * shape[dim] + indices[dim]
    return flat


def places_of(flat: Any, shape: Shape) -> Any:
    """Return what :func:`flat_places` numbered."""
    rows: list[Any] = []
    for size in reversed(shape):
        rows.append(flat % max(size, 1))
        flat = flat.div(max(size, 1), rounding_mode="floor")
    if not rows:
        return zeros(0, flat._shape[0], dtype=int64, device=flat.device)
    return stack(rows[::-1])


def added_up(places: Any, count: int, values: Any) -> Any:
    """Return `count` sums of values, (nnz, …), each to the place that it names; of bool their "or"."""
    whole = values.to(int64) if values.dtype.category == BOOL else values
    empty = zeros((count, *values._shape[1:]), dtype=whole.dtype, device=values.device)
    total = empty.index_add(0, places, whole)
    return total if whole is values else total.to(values.dtype)


def coalesced(tensor: CooTensor) -> CooTensor:
    """Return the tensor with coordinates in order, each of them once."""
    shape = tensor._shape[: tensor.sparse_dim()]
    flat, inverse = flat_places(tensor._where, shape).unique(return_inverse=True)
    values = added_up(inverse, flat._shape[0], tensor._stored)
    return CooTensor.of(places_of(flat, shape), values, tensor._shape, True)


def first_of_each(tensor: CooTensor) -> CooTensor:
    """Return the tensor with of the elements at one place only the first, in order."""
    shape = tensor._shape[: tensor.sparse_dim()]
    ordered, order = flat_places(tensor._where, shape).sort(stable=True)
    fresh = zeros(ordered._shape[0], dtype=ordered.dtype, device=ordered.device) == 0
    fresh[1:] = ordered[1:] != ordered[:-1]
    chosen = order[fresh]
    values = tensor._stored.index_select(0, chosen)
    return CooTensor.of(tensor._where.index_select(1, chosen), values, tensor._shape, True)


def dense_of_coo(tensor: CooTensor) -> Any:
    """Return the dense tensor of the same elements."""
    shape = tensor._shape[: tensor.sparse_dim()]
    flat = flat_places(tensor._where, shape)
    return added_up(flat, math.prod(shape), tensor._stored).reshape(tensor._shape)


def coo_of_dense(tensor: Any, sparse_dim: int) -> CooTensor:
    """Return the elements of a dense tensor that are not zero; of its first dimensions coordinates."""
    shape = tensor._shape[:sparse_dim]
    rows = tensor.reshape((math.prod(shape), *tensor._shape[sparse_dim:]))
    named = (rows != 0).reshape((rows._shape[0], math.prod(rows._shape[1:]))).any(1)
    flat = named.nonzero().squeeze(1)
    values = rows.index_select(0, flat)
    return CooTensor.of(places_of(flat, shape), values, tensor._shape, True)


def coo_of_csr(tensor: CsrTensor) -> CooTensor:
    """Return a matrix that is stored row by row by coordinates; in order if it was so in each row."""
    columns = tensor._columns.to(int64)
    rows = rows_of(tensor._starts.to(int64), columns)
    ordered = flat_places(stack([rows, columns]), tensor._shape)
    unique = bool((ordered[1:] > ordered[:-1]).all()) if not ordered.is_meta else False
    return CooTensor.of(stack([rows, columns]), tensor._stored, tensor._shape, unique)


def csr_of_coo(tensor: CooTensor) -> CsrTensor:
    """Return a matrix by coordinates row by row."""
    if tensor.sparse_dim() != 2 or tensor.dense_dim():
        raise RuntimeError(
            "to_sparse_csr(): only matrices are stored row by row, of two sparse dimensions and no dense "
            f"one; got sparse_dim={tensor.sparse_dim()}, dense_dim={tensor.dense_dim()}"
        )
    tensor = tensor.coalesce()
    numbers = arange(tensor._shape[0] + 1, dtype=int64, device=tensor.device)
    starts = searchsorted(tensor._where[0].contiguous(), numbers)
    return CsrTensor.of(starts, tensor._where[1], tensor._stored, tensor._shape)


def spread(starts: Any, ends: Any) -> tuple[Any, Any]:
    """Return the range of each number, and the numbers, of ranges `starts` to `ends` one after another."""
    counts = ends - starts
    owners = arange(counts._shape[0], device=counts.device).repeat_interleave(counts)
    before = counts.cumsum(0) - counts
    inside = arange(owners._shape[0], device=counts.device) - before.index_select(0, owners)
    return owners, starts.index_select(0, owners) + inside
