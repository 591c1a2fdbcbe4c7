"""Derivatives of cumulative ops."""

from __future__ import annotations

from typing import Any

from tensorplug.core.dispatch.op_registry import handle
from tensorplug.core.ops.creation.creation import fill_new
from tensorplug.core.ops.cumulative import cumprod_backward, recurrence
from tensorplug.core.ops.indexing.gather import gather_backward
from tensorplug.core.ops.rules import widened
from tensorplug.core.tensor.shapes import Shape

from ..engine.derivatives import derivative
from ..forward.tangents import linear
from ..vmap.vmap_rules import shared_rule

_CAT = handle("cat")


def _reversed_cumsum(g: Any, input_shape: Shape, dim: int) -> Any:
    return g.flip(dim).cumsum(dim).flip(dim) if input_shape else g


def _logcumsumexp(g: Any, input: Any, result: Any, input_shape: Shape, dim: int) -> Any:
    """Return the sum over k >= i of ``g[k] * exp(x[i] - result[k])``.

    The weight is ``exp(x[i] - result[i])`` times ``exp(result[j - 1] - result[j])`` for all j up
    to k. No factor is above one, so nothing overflows, and the whole is linear in g.
    """
    if not input_shape:
        return g
    return widened(_weighted_sums, g, input, result, dim)


def _weighted_sums(g: Any, input: Any, result: Any, dim: int) -> Any:
    rows = result.transpose(dim, -1)
    size = rows.shape[-1]
    if size == 0:
        return g
    before, after = rows.narrow(-1, 0, size - 1), rows.narrow(-1, 1, size - 1)
    # Of equal results, infinite ones too, the weight is 1: what comes later leaves the earlier sums alone.
    steps = (before - after).masked_fill(before == after, 0).exp()._conj()
    zero = fill_new((*rows.shape[:-1], 1), 0, rows.dtype, rows.device)
    factor = _CAT.call([zero, steps.flip(-1)], -1)
    s = recurrence(factor, g.transpose(dim, -1).flip(-1)).flip(-1)
    return (input - result).exp()._conj() * s.transpose(dim, -1)


def _extreme(g_values: Any, input_shape: Shape, dim: int, indices: Any) -> Any:
    return gather_backward(g_values, input_shape, dim, indices)


DERIVATIVES = [
    derivative("cummax", input=_extreme),
    derivative("cummin", input=_extreme),
    derivative("cumsum", input=_reversed_cumsum),
    derivative(
        "cumprod",
        input=lambda g, input, dim, result: cumprod_backward(g, input, dim, result),
    ),
    derivative("logcumsumexp", input=_logcumsumexp),
]


TANGENTS = [
    linear("cumsum", "input"),
]


VMAP_RULES = [
    shared_rule("along_second_argument", "cumsum", "cumprod", "logcumsumexp"),
]
