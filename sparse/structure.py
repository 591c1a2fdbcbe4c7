"""Where the elements of sparse tensors are: in which order, each once, and as other layouts have them."""

from __future__ import annotations

import math
from typing import Any

from tensorplug.core.device.dtypes import BOOL, int64
from tensorplug.core.ops import arange, searchsorted, stack, zeros
from tensorplug.core.tensor.shapes import Shape

from .compressed import CompressedTensor
from .coordinates import CooTensor
from .ops.sparse import rows_of


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


def coo_of_compressed(tensor: CompressedTensor) -> CooTensor:
    """Return the elements of a compressed tensor by coordinates, in the order in which they are stored.

    Its values are those of `tensor` in another shape: blocks and batches become elements, (nnz, dense).
    """
    shape, batch, blocksize = tensor._shape, tensor._batch, tensor._blocksize
    dense = shape[batch + 2 :]
    plain = tensor._plain.to(int64)
    owners = rows_of(tensor._starts.to(int64), plain).reshape(-1)
    rows, columns = owners, plain.reshape(-1)
    count = rows._shape[0]
    if not tensor._layout.by_rows:
        rows, columns = columns, rows
    numbers: list[Any] = []
    if batch:
        matrices = math.prod(shape[:batch])
        order = arange(matrices, dtype=int64, device=tensor.device)
        numbers = [*places_of(order.repeat_interleave(tensor._nnz()), shape[:batch])]
    if tensor._layout.blocked:
        block = (count, *blocksize)
        down = arange(blocksize[0], device=tensor.device).unsqueeze(1)
        across = arange(blocksize[1], device=tensor.device)
        rows = _in_blocks(rows * blocksize[0], block) + down
        columns = _in_blocks(columns * blocksize[1], block) + across
        numbers = [_in_blocks(each, block).reshape(-1) for each in numbers]
        rows, columns = rows.reshape(-1), columns.reshape(-1)
        count = count * blocksize[0] * blocksize[1]
    where = stack([*numbers, rows, columns])
    unique = tensor._layout.by_rows and blocksize == (1, 1) and not where.is_meta
    if unique:
        ordered = flat_places(where, shape[: batch + 2])
        unique = bool((ordered[1:] > ordered[:-1]).all())
    return CooTensor.of(where, tensor._stored.reshape((count, *dense)), shape, unique)


def _in_blocks(numbers: Any, block: Shape) -> Any:
    """Return a number of each block as one of each of its elements, (nnz, rows, columns)."""
    return numbers.reshape((-1, 1, 1)).expand(block)


def compressed_of_coo(
    places: CooTensor, shown: Any, blocksize: tuple[int, int] = (1, 1), dtype: Any = int64
) -> CompressedTensor:
    """Return a tensor by coordinates row by row or column by column.

    Parameters
    ----------
    places : CooTensor
        Its last two sparse dimensions are those of the matrices, all before them a batch.
    shown : CompressedLayout
        The layout.
    blocksize : tuple of int
        Rows and columns of a block, by which sizes can be divided.
    dtype : DType
        Of the indices.

    Raises
    ------
    RuntimeError
        If matrices of the batch store different numbers of elements or blocks.
    """
    shape, batch = places._shape, places.sparse_dim() - 2
    places = _blocks(places, blocksize) if shown.blocked else places.coalesce()
    where, values = places._where, places._stored
    sizes = places._shape[: batch + 2]
    if not shown.by_rows:
        sizes = (*sizes[:batch], sizes[-1], sizes[-2])
        where = stack([*where[:batch], where[batch + 1], where[batch]])
        order = flat_places(where, sizes).argsort()
        where, values = where.index_select(1, order), values.index_select(0, order)
    owners = flat_places(where[: batch + 1], sizes[: batch + 1]).contiguous()
    leading, count = sizes[:batch], sizes[batch]
    matrices = math.prod(leading)
    first = arange(matrices, dtype=int64, device=places.device).unsqueeze(1)
    numbers = arange(count + 1, dtype=int64, device=places.device)
    nnz = values._shape[0] // max(matrices, 1)
    starts = searchsorted(owners, first * count + numbers) - first * nnz
    if batch and bool((starts[:, -1] != nnz).any()):
        raise RuntimeError("Expect the same number of specified elements per batch.")
    return CompressedTensor.of(
        shown,
        starts.reshape((*leading, count + 1)).to(dtype),
        where[batch + 1].reshape((*leading, nnz)).to(dtype),
        values.reshape((*leading, nnz, *values._shape[1:])),
        shape,
    )


def _blocks(places: CooTensor, blocksize: tuple[int, int]) -> CooTensor:
    """Return blocks that have an element by the coordinates of blocks, the others of their elements zero."""
    batch = places.sparse_dim() - 2
    rows, columns = places._where[batch], places._where[batch + 1]
    height, width = blocksize
    down, across = [
        each.div(size, rounding_mode="floor") for each, size in ((rows, height), (columns, width))
    ]
    shape = places._shape
    sizes = (*shape[:batch], shape[batch] // height, shape[batch + 1] // width)
    flat = flat_places(stack([*places._where[:batch], down, across]), sizes)
    keys, groups = flat.unique(return_inverse=True)
    count = keys._shape[0]
    inside = (groups * height + rows % height) * width + columns % width
    values = added_up(inside, count * height * width, places._stored)
    block = (height, width, *shape[batch + 2 :])
    return CooTensor.of(
        places_of(keys, sizes), values.reshape((count, *block)), (*sizes, *block), True
    )


def spread(starts: Any, ends: Any) -> tuple[Any, Any]:
    """Return the range of each number, and the numbers, of ranges `starts` to `ends` one after another."""
    counts = ends - starts
    owners = arange(counts._shape[0], device=counts.device).repeat_interleave(counts)
    before = counts.cumsum(0) - counts
    inside = arange(owners._shape[0], device=counts.device) - before.index_select(0, owners)
    return owners, starts.index_select(0, owners) + inside
