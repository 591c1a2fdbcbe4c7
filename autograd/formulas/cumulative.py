"""Derivatives of cumulative ops."""

from __future__ import annotations

from typing import Any

from tensorplug.core.dispatch.op_registry import handle
from tensorplug.core.ops.creation.creation import fill_new
from tensorplug.core.ops.indexing.gather import gather_backward
from tensorplug.core.tensor.shapes import Shape

from ..engine.derivatives import derivative
from ..forward.tangents import linear
from ..vmap.vmap_rules import shared_rule
from .reductions import products_before

_CAT = handle("cat")


def _reversed_cumsum(g: Any, input_shape: Shape, dim: int) -> Any:
    return g.flip(dim).cumsum(dim).flip(dim) if input_shape else g


def _cumprod(g: Any, input: Any, input_shape: Shape, dim: int) -> Any:
    """Return the gradient of a cumulative product without a division, so zeros do no harm.

    The gradient of x[i] is the product of what comes before it times s[i], where
    ``s[i] = g[i] + x[i + 1] * s[i + 1]``.
    """
    if not input_shape:
        return g
    rows = input.transpose(dim, -1)
    back = rows._conj().flip(-1)
    # s, with both read from the end: s[i] = g[i] + factor[i] * s[i - 1]
    factor = _shifted(back, 1)
    s = _recurrence(factor, g.transpose(dim, -1).flip(-1))
    return (products_before(rows)._conj() * s.flip(-1)).transpose(dim, -1)


def _shifted(rows: Any, step: int) -> Any:
    """Return `rows` shifted by `step` along the last dimension, with zeros moving in."""
    size = rows.shape[-1]
    zeros = fill_new((*rows.shape[:-1], min(step, size)), 0, rows.dtype, rows.device)
    return zeros if size <= step else _CAT.call([zeros, rows.narrow(-1, 0, size - step)], -1)


def _recurrence(factor: Any, term: Any) -> Any:
    """Return s with ``s[i] = term[i] + factor[i] * s[i - 1]``, in log2(n) whole-array steps."""
    size = term.shape[-1]
    step = 1
    while step < size:
        term = term + factor * _shifted(term, step)
        factor = factor * _shifted(factor, step)
        step *= 2
    return term


def _logcumsumexp(g: Any, input: Any, result: Any, input_shape: Shape, dim: int) -> Any:
    """Return the sum over k >= i of ``g[k] * exp(x[i] - result[k])``.

    The weight is ``exp(x[i] - result[i])`` times ``exp(result[j - 1] - result[j])`` for all j up
    to k. No factor is above one, so nothing overflows, and the whole is linear in g.
    """
    if not input_shape:
        return g
    rows = result.transpose(dim, -1)
    size = rows.shape[-1]
    if size == 0:
        return g
    steps = (rows.narrow(-1, 0, size - 1) - rows.narrow(-1, 1, size - 1)).exp()._conj()
    zero = fill_new((*rows.shape[:-1], 1), 0, rows.dtype, rows.device)
    factor = _CAT.call([zero, steps.flip(-1)], -1)
    s = _recurrence(factor, g.transpose(dim, -1).flip(-1)).flip(-1)
    return (input - result).exp()._conj() * s.transpose(dim, -1)


def _extreme(g_values: Any, input_shape: Shape, dim: int, indices: Any) -> Any:
    return gather_backward(g_values, input_shape, dim, indices)


DERIVATIVES = [
    derivative("cummax", input=_extreme),
    derivative("cummin", input=_extreme),
    derivative("cumsum", input=_reversed_cumsum),
    derivative("cumprod", input=_cumprod),
    derivative("logcumsumexp", input=_logcumsumexp),
]


TANGENTS = [
    linear("cumsum", "input"),
]


VMAP_RULES = [
    shared_rule("along_second_argument", "cumsum", "cumprod", "logcumsumexp"),
]
