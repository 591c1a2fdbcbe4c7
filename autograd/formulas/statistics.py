"""Derivatives of variance and standard deviation."""

from __future__ import annotations

from typing import Any

from tensorplug.core.ops.statistics.variance import degrees_of_freedom, reciprocal
from tensorplug.core.shapes import Shape

from ..derivatives import derivative
from .reductions import quotient, unsqueezed


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


DERIVATIVES = [derivative("var", input=_var), derivative("std", input=_std)]
