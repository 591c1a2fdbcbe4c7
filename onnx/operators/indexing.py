"""Gathering and scattering by indices."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor, ops

from ..registry import operator
from ..values import dtype_of

__all__: list[str] = []

_REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


def _positive(indices: Tensor, length: int) -> Tensor:
    """Return indices counted from the front, as int64."""
    indices = indices.to(dtype_of(7))
    return ops.where(indices < 0, indices + length, indices)


@operator("Gather")
def gather(data: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    axis %= data.dim()
    flat = _positive(indices, data.shape[axis]).reshape(-1)
    picked = ops.index_select(data, axis, flat)
    return picked.reshape((*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]))


@operator("GatherElements")
def gather_elements(data: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    return ops.gather(data, axis, _positive(indices, data.shape[axis]))


def _flat_places(data: Tensor, indices: Tensor, batch: int) -> Tensor:
    """Return the place of each indexed block among those of ``data``, its indexed dimensions made one."""
    depth = indices.shape[-1]
    place = ops.zeros(tuple(indices.shape[:-1]), dtype=dtype_of(7), device=data.device)
    for b in range(batch):
        along = ops.arange(data.shape[b], device=data.device)
        along = along.reshape((-1,) + (1,) * (indices.dim() - 2 - b))
        place = place * data.shape[b] + along
    for i in range(depth):
        place = place * data.shape[batch + i] + _positive(indices[..., i], data.shape[batch + i])
    return place


@operator("GatherND")
def gather_nd(data: Tensor, indices: Tensor, *, batch_dims: int = 0) -> Tensor:
    depth = batch_dims + indices.shape[-1]
    places = _flat_places(data, indices, batch_dims)
    rows = data.reshape((-1, *data.shape[depth:]))
    picked = ops.index_select(rows, 0, places.reshape(-1))
    return picked.reshape((*indices.shape[:-1], *data.shape[depth:]))


@operator("Scatter")
@operator("ScatterElements")
def scatter_elements(
    data: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0, reduction: str = "none"
) -> Tensor:
    places = _positive(indices, data.shape[axis])
    if reduction == "none":
        return ops.scatter(data, axis, places, updates)
    return ops.scatter_reduce(data, axis, places, updates, _REDUCTIONS[reduction])


@operator("ScatterND")
def scatter_nd(
    data: Tensor, indices: Tensor, updates: Tensor, *, reduction: str = "none"
) -> Tensor:
    depth = indices.shape[-1]
    places = _flat_places(data, indices, 0).reshape(-1)
    inner = tuple(data.shape[depth:])
    rows = data.reshape((-1, *inner))
    blocks = updates.reshape((-1, *inner))
    if reduction == "none":
        return ops.index_copy(rows, 0, places, blocks).reshape(data.shape)
    wide = places.reshape((-1,) + (1,) * len(inner)).expand(blocks.shape)
    return ops.scatter_reduce(rows, 0, wide, blocks, _REDUCTIONS[reduction]).reshape(data.shape)


@operator("Compress")
def compress(input: Tensor, condition: Tensor, *, axis: int | None = None) -> Tensor:
    places = ops.nonzero(condition).reshape(-1)
    if axis is None:
        return ops.index_select(input.reshape(-1), 0, places)
    return ops.index_select(input, axis, places)


@operator("OneHot", host=("depth",))
def one_hot(indices: Tensor, depth: Any, values: Tensor, *, axis: int = -1) -> Tensor:
    [count] = depth if isinstance(depth, list) else [depth]
    count = int(count)
    rank = indices.dim() + 1
    kept = indices.to(dtype_of(7))
    kept = ops.where((kept >= -count) & (kept < count), ops.remainder(kept, count), -1)
    along = [1] * rank
    along[axis % rank] = count
    classes = ops.arange(count, device=indices.device).reshape(along)
    hot = classes == ops.unsqueeze(kept, axis % rank)
    return ops.where(hot, values[1], values[0])


@operator("TensorScatter", since=24)
def tensor_scatter(
    past_cache: Tensor,
    update: Tensor,
    write_indices: Tensor | None = None,
    *,
    mode: str = "linear",
    axis: int = -2,
) -> Tensor:
    """Write rows into a cache of keys or values, in each sequence from its own place on."""
    axis %= past_cache.dim()
    length = past_cache.shape[axis]
    batch = past_cache.shape[0]
    start = (
        ops.zeros(batch, dtype=dtype_of(7), device=past_cache.device)
        if write_indices is None
        else write_indices.to(dtype_of(7))
    )
    places = start[:, None] + ops.arange(update.shape[axis], device=past_cache.device)
    if mode == "circular":
        places = ops.remainder(places, length)
    wide = [1] * past_cache.dim()
    wide[0], wide[axis] = batch, update.shape[axis]
    return ops.scatter(past_cache, axis, places.reshape(wide).expand(update.shape), update)
