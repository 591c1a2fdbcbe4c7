"""Derivatives of reductions."""

from __future__ import annotations

import math
from typing import Any

from tensorplug.core.dispatch.op_registry import handle
from tensorplug.core.ops.copying import cast
from tensorplug.core.ops.creation.creation import fill_new
from tensorplug.core.ops.indexing.gather import gather_backward
from tensorplug.core.tensor.shapes import Shape

from ..engine.derivatives import derivative, not_differentiable
from ..forward.tangents import linear
from ..vmap.vmap_rules import shared_rule

_CAT = handle("cat")


def restore(g: Any, shape: Shape, dim: Shape, keepdim: bool) -> Any:
    """Return `g`, the gradient of a reduction of `shape`, expanded to that shape again."""
    if not g.ndim:
        return g.expand(shape)
    return unsqueezed(g, shape, dim, keepdim).expand(shape)


def unsqueezed(reduced: Any, shape: Shape, dim: Shape, keepdim: bool) -> Any:
    """Return what a reduction of `shape` over `dim` gave, with its dimensions of size 1 back."""
    if keepdim:
        return reduced
    return reduced.reshape(tuple([1 if d in dim else size for d, size in enumerate(shape)]))


def count_of(shape: Shape, dim: Shape) -> int:
    """Return how many elements one output of a reduction over `dim` came from."""
    return math.prod([shape[d] for d in dim])


def _sum(g: Any, input_shape: Shape, dim: Shape, keepdim: bool) -> Any:
    return restore(g, input_shape, dim, keepdim)


def _nansum(g: Any, input: Any, input_shape: Shape, dim: Shape, keepdim: bool) -> Any:
    return restore(g, input_shape, dim, keepdim).masked_fill(input != input, 0)


def _chosen(g_values: Any, indices: Any, input_shape: Shape, dim: int, keepdim: bool) -> Any:
    if not keepdim and input_shape:
        g_values, indices = g_values.unsqueeze(dim), indices.unsqueeze(dim)
    return gather_backward(g_values, input_shape, dim, indices)


def _mean(g: Any, input_shape: Shape, dim: Shape, keepdim: bool) -> Any:
    # The empty mean has no element to send a gradient to; any divisor does.
    return restore(g / (count_of(input_shape, dim) or 1), input_shape, dim, keepdim)


def _shared(g: Any, input: Any, result: Any, input_shape: Shape, dim: Shape, keepdim: bool) -> Any:
    """Share the gradient among the elements that equal the result; NaN equals NaN here."""
    found = unsqueezed(result, input_shape, dim, keepdim)
    hit = (input == found) | ((input != input) & (found != found))
    # Of no dimensions, the sum would be over all: those of the samples, under vmap.
    share = unsqueezed(g, input_shape, dim, keepdim) / (hit.sum(dim, True) if dim else hit)
    return share * cast(hit, g.dtype)


def _prod(g: Any, input: Any, input_shape: Shape, dim: Shape, keepdim: bool) -> Any:
    """Multiply by the product of the other elements, which holds where some are zero."""
    if not input_shape:
        return g
    others = products_of_others(input, dim)
    return unsqueezed(g, input_shape, dim, keepdim) * others._conj()


def products_of_others(input: Any, dim: Shape) -> Any:
    """Return for each element the product of all others along the dimensions `dim`."""
    shape = input.shape
    kept = tuple([d for d in range(len(shape)) if d not in dim])
    order = kept + dim
    rows = input.permute(order).reshape(
        (*[shape[d] for d in kept], count_of(shape, dim)),
    )
    others = products_before(rows) * products_before(rows.flip(-1)).flip(-1)
    inverse = sorted(range(len(order)), key=order.__getitem__)
    return others.reshape(tuple([shape[d] for d in order])).permute(tuple(inverse))


def products_before(rows: Any) -> Any:
    """Return for each element the product of those before it along the last dimension."""
    size = rows.shape[-1]
    if size == 0:
        return rows
    one = fill_new((*rows.shape[:-1], 1), 1, rows.dtype, rows.device)
    return _CAT.call([one, rows.narrow(-1, 0, size - 1)], -1).cumprod(-1)


DERIVATIVES = [
    derivative("sum", input=_sum),
    derivative("mean", input=_mean),
    derivative("prod", input=_prod),
    derivative("amax", input=_shared),
    derivative("amin", input=_shared),
    derivative("max", input=_chosen),
    derivative("min", input=_chosen),
    derivative("nansum", input=_nansum),
    *not_differentiable("any", "all", "argmax", "argmin", "count_nonzero"),
]


TANGENTS = [
    # reductions
    linear("sum", "input"),
    linear("mean", "input"),
]


VMAP_RULES = [
    shared_rule("over_dims", "sum", "mean", "prod", "any", "all", "amax", "amin"),
    shared_rule("extreme_place", "argmax", "argmin"),
]
