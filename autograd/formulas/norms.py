"""Derivatives of norms."""

from __future__ import annotations

import math
from typing import Any

from tensorplug.core.ops.copying import cast
from tensorplug.core.shapes import Shape

from ..derivatives import derivative
from .reductions import quotient, unsqueezed


def _vector_norm(
    g: Any, x: Any, result: Any, x_shape: Shape, ord: float, dim: Shape, keepdim: bool
) -> Any:
    """Return the gradient; zero wherever the norm has no slope, as a subgradient."""
    g = unsqueezed(g, x_shape, dim, keepdim)
    result = unsqueezed(result, x_shape, dim, keepdim)
    if ord == 0:
        return x * 0 * g
    if ord == 1:
        return g * x.sgn()
    if ord == 2:
        return x * quotient(g, result)
    size = x.abs()
    if math.isinf(ord):
        hit = (size == result) | ((size != size) & (result != result))
        share = g / (hit.sum(dim, True) if dim else hit)
        return x.sgn() * (share * cast(hit, size.dtype))
    if ord < 1:
        zero = size == 0
        slopes = x.sgn() * size.masked_fill(zero, 1).pow(ord - 1).masked_fill(zero, 0)
        return slopes * (g * result.pow(1 - ord))
    if ord < 2:
        slopes = x.sgn() * size.pow(ord - 1)
    else:
        slopes = x * size.pow(ord - 2)
    return slopes * quotient(g, result.pow(ord - 1))


DERIVATIVES = [derivative("linalg_vector_norm", x=_vector_norm)]
