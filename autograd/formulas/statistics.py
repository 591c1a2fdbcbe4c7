"""Derivatives of variance and standard deviation."""

from __future__ import annotations

from typing import Any

from tensorplug.core.ops.norms import quotient
from tensorplug.core.ops.statistics.variance import degrees_of_freedom, reciprocal
from tensorplug.core.tensor.shapes import Shape

from ..engine.derivatives import derivative
from ..forward.tangents import tangent
from ..vmap.vmap_rules import shared_rule
from .reductions import unsqueezed


def _var(
    g: Any, input: Any, input_shape: Shape, dim: Shape, correction: float, keepdim: bool
) -> Any:
    scale = 2 * reciprocal(degrees_of_freedom(input_shape, dim, correction))
    return unsqueezed(g, input_shape, dim, keepdim) * scale * (input - input.mean(dim, True))


def _std(
    g: Any,
    input: Any,
    result: Any,
    input_shape: Shape,
    dim: Shape,
    correction: float,
    keepdim: bool,
) -> Any:
    # The root has no slope at zero; there the elements are equal and so is each one's pull.
    outer = quotient(g, 2 * result)
    return _var(outer, input, input_shape, dim, correction, keepdim)


def _std_tangent(
    t: Any, input: Any, result: Any, input_shape: Any, dim: Any, correction: float, keepdim: bool
) -> Any:
    return quotient(_var_tangent(t, input, input_shape, dim, correction, keepdim), 2 * result)


def _var_tangent(
    t: Any, input: Any, input_shape: Any, dim: Any, correction: float, keepdim: bool
) -> Any:
    scale = 2 * reciprocal(degrees_of_freedom(input_shape, dim, correction))
    products = (input - input.mean(dim, True))._conj() * t
    if products.dtype.is_complex:
        products = products.real
    return products.sum(dim, keepdim) * scale


DERIVATIVES = [
    derivative("var", input=_var),
    derivative("std", input=_std),
]


VMAP_RULES = [
    shared_rule("whole_loop", "histc", "histogram"),
]


TANGENTS = [
    tangent("var", input=_var_tangent),
    tangent("std", input=_std_tangent),
]
