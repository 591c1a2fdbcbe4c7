"""Rules for composites that are batched as a whole, rather than taken apart into their primitives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from tensorplug.core.device import generator
from tensorplug.core.dispatch.op_registry import Op, handle
from tensorplug.core.ops.creation.creation import empty_strided
from tensorplug.core.tensor.base import TensorBase

from .batched_tensor import check_randomness
from .primitive_rules import LogicalTensor, full, one_sample, padded, shape_of
from .vmap import vmap
from .vmap_rules import VmapInfo

WholeRule: TypeAlias = Callable[[Op, tuple[Any, ...], VmapInfo], Any]

_STACK = handle("stack")
_CLONE = handle("clone")


def _rewrap(op: Op, values: tuple[Any, ...]) -> Any:
    args, kwargs = op.unbind(values)
    return op.call(*args, **kwargs)


def whole_as_is(op: Op, values: tuple[Any, ...], info: VmapInfo) -> Any:
    """Call a composite that treats all elements alike, or leading dimensions as a batch."""
    return _rewrap(op, tuple([v.tensor if isinstance(v, LogicalTensor) else v for v in values]))


def laid_out(op: Op, values: tuple[Any, ...], info: VmapInfo) -> Any:
    """Copy the samples, each in the strides asked for, one after the other."""
    input, stride = values
    return op.call(input.tensor, (math.prod(input.shape), *stride))


def merged(op: Op, values: tuple[Any, ...], info: VmapInfo) -> Any:
    """Join the samples with the first dimension, which is a batch by itself, if only the input has any."""
    first, *rest = values
    size = info.batch_size
    if (
        not isinstance(first, LogicalTensor)
        or any(isinstance(v, LogicalTensor) for v in rest)
        or not size
    ):
        return NotImplemented
    count, *shape = first.shape
    result = _rewrap(op, (first.tensor.reshape((size * count, *shape)), *rest))
    if isinstance(result, tuple):
        return tuple([r.reshape((size, count, *r._shape[1:])) for r in result])
    return result.reshape((size, count, *result._shape[1:]))


def whole_loop(op: Op, values: tuple[Any, ...], info: VmapInfo) -> Any:
    """Call a composite once per sample, and stack what it returns."""
    rows = [_rewrap(op, one_sample(values, number)) for number in range(info.batch_size)]
    if not rows:
        return NotImplemented
    if not isinstance(rows[0], tuple):
        return _STACK.call(rows)
    columns = [_STACK.call(list(column)) for column in zip(*rows, strict=True)]
    key = type(rows[0])
    return key(*columns) if hasattr(key, "_fields") else tuple(columns)


def loop_by_counts(op: Op, values: tuple[Any, ...], info: VmapInfo) -> Any:
    """Call once per sample where each has numbers of its own that say how many elements go where."""
    known = dict(zip(op.parameters, values, strict=True))
    counts = known.get("mask", known.get("repeats"))
    if counts is None and "repeats" in known:  # the first argument says it
        counts = values[0]
    return whole_loop(op, values, info) if isinstance(counts, LogicalTensor) else NotImplemented


def random_loop(op: Op, values: tuple[Any, ...], info: VmapInfo) -> Any:
    """Call a random composite once per sample from one place of the stream, or once for them all."""
    check_randomness(info.randomness)
    if info.randomness == "different":
        return _drawn_together(op, values, info.batch_size)
    known = list(generator._defaults.values())
    known.extend([v for v in values if isinstance(v, generator.Generator)])
    before = [(g, g._position) for g in known]
    rows = []
    for number in range(info.batch_size):
        for g, position in before:
            with g._lock:
                g._position = position
        rows.append(_rewrap(op, one_sample(values, number)))
    return _STACK.call(rows) if rows else NotImplemented


def random_rows(op: Op, values: tuple[Any, ...], info: VmapInfo) -> Any:
    """Call a random composite of vectors, or of matrices, which are batches of them already."""
    first, *rest = values
    if info.randomness != "different" or len(shape_of(first)) == 1:
        return random_loop(op, values, info)
    rows = full(first, info.batch_size)
    return _rewrap(op, (rows.flatten(0, 1), *rest)).unflatten(0, rows.shape[:2])


def _drawn_together(op: Op, values: tuple[Any, ...], size: int) -> Any:
    sorts = LogicalTensor, TensorBase
    ndim = max([len(shape_of(v)) for v in values if isinstance(v, sorts)])
    batches = [padded(full(v, size), ndim) if isinstance(v, sorts) else v for v in values]
    return _rewrap(op, tuple(batches))


def first_batched(op: Op, values: tuple[Any, ...], info: VmapInfo) -> Any:
    """Call a composite that writes into a copy of its first argument with a batch there."""
    if isinstance(values[0], LogicalTensor):
        return NotImplemented
    # One more sample dimension for all: the op's own rule comes next.
    dims = tuple(
        [0 if n == 0 or isinstance(v, LogicalTensor) else None for n, v in enumerate(values)]
    )
    arranged = [
        v.expand((info.batch_size, *v._shape))
        if n == 0
        else v.tensor
        if isinstance(v, LogicalTensor)
        else v
        for n, v in enumerate(values)
    ]
    return vmap(lambda *args: _rewrap(op, args), in_dims=dims)(*arranged)


def diag_embed(op: Op, values: tuple[Any, ...], info: VmapInfo) -> Any:
    """Count the dimensions of the result from behind the hidden one."""
    input, offset, dim1, dim2 = values
    dim1, dim2 = [d if d < 0 else d + 1 for d in (dim1, dim2)]
    return op.call(input.tensor, offset, dim1, dim2)


def linalg_solve(op: Op, values: tuple[Any, ...], info: VmapInfo) -> Any:
    """Say clearly whether the right side is a vector, which more dimensions could hide."""
    parameters = dict(zip(op.parameters, values, strict=True))
    a, b = parameters.pop("A"), parameters.pop("B")
    a_shape, b_shape = shape_of(a), shape_of(b)
    vector = len(b_shape) == 1 or b_shape == a_shape[:-1]
    left, right = full(a, info.batch_size), full(b, info.batch_size)
    if vector:
        right = right[..., None]
    ndim = max(left.ndim, right.ndim) - 1
    result = op.call(padded(left, ndim), padded(right, ndim), **parameters)
    if not vector:
        return result
    if isinstance(result, tuple):
        return (result[0].squeeze(-1), *result[1:])
    return result.squeeze(-1)


def filled(op: Op, values: tuple[Any, ...], info: VmapInfo) -> Any:
    """Make a batch like a batch: ``zeros_like``, ``new_zeros`` and their kin."""
    input = values[0]
    if not isinstance(input, LogicalTensor):
        return NotImplemented
    made = _rewrap(op, (input.tensor[0] if info.batch_size else input.tensor.sum(0), *values[1:]))
    made = made.detach()
    whole = made.expand((info.batch_size, *made._shape))
    if made.is_contiguous():
        return _CLONE.call(whole)
    strides = made.stride()
    extent = 1 + sum([(n - 1) * step for n, step in zip(made._shape, strides, strict=True)])
    key = made._key
    return empty_strided(
        whole._shape, (extent, *strides), dtype=key.dtype, device=key.device
    ).copy_(whole)
