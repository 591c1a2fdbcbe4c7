"""Derivatives of distances."""

from __future__ import annotations

from typing import Any

from ..engine.derivatives import derivative
from .reductions import quotient
from .shape import sum_to_shape


def _first(g: Any, x1: Any, x2: Any, result: Any) -> Any:
    ratio = quotient(g, result)
    return sum_to_shape(x1 * ratio.sum(-1, True) - ratio @ x2, x1.shape)


def _second(g: Any, x1: Any, x2: Any, result: Any) -> Any:
    return _first(g.transpose(-2, -1), x2, x1, result.transpose(-2, -1))


DERIVATIVES = [derivative("euclidean_dist", x1=_first, x2=_second)]
