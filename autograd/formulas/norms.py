"""Derivatives of norms."""

from __future__ import annotations

import math
from typing import Any

from tensorplug.core.ops.copying import cast
from tensorplug.core.shapes import Shape

from ..derivatives import derivative
from .reductions import quotient, unsqueezed


def _vector_norm(
    g: Any, input: Any, result: Any, input_shape: Shape, ord: float, dim: Shape, keepdim: bool
) -> Any:
    """Return the gradient; zero wherever the norm has no slope, as a subgradient."""
    g = unsqueezed(g, input_shape, dim, keepdim)
    result = unsqueezed(result, input_shape, dim, keepdim)
    if ord == 0:
        return input * 0 * g
    if ord == 1:
        return g * input.sgn()
    if ord == 2:
        return input * quotient(g, result)
    size = input.abs()
    if math.isinf(ord):
        hit = (size == result) | ((size != size) & (result != result))
        share = g / (hit.sum(dim, True) if dim else hit)
        return input.sgn() * (share * cast(hit, size.dtype))
    if ord < 1:
        zero = size == 0
        slopes = input.sgn() * size.masked_fill(zero, 1).pow(ord - 1).masked_fill(zero, 0)
        return slopes * (g * result.pow(1 - ord))
    if ord < 2:
        slopes = input.sgn() * size.pow(ord - 1)
    else:
        slopes = input * size.pow(ord - 2)
    return slopes * quotient(g, result.pow(ord - 1))


DERIVATIVES = [
    derivative("_vector_norm", input=_vector_norm),
]
