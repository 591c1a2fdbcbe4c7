"""Derivatives of distances."""

from __future__ import annotations

from typing import Any

from tensorplug.core.ops.distances import minkowski_dist_backward, pdist_backward
from tensorplug.core.ops.norms import quotient

from ..engine.derivatives import derivative
from .shape import sum_to_shape


def _first(g: Any, x1: Any, x2: Any, result: Any) -> Any:
    ratio = quotient(g, result)
    return sum_to_shape(x1 * ratio.sum(-1, True) - ratio @ x2, x1.shape)


def _second(g: Any, x1: Any, x2: Any, result: Any) -> Any:
    return _first(g.transpose(-2, -1), x2, x1, result.transpose(-2, -1))


def _of_pairs(g: Any, x1: Any, x2: Any, p: float, result: Any) -> list[Any]:
    return list(minkowski_dist_backward(g, x1, x2, p, result))


DERIVATIVES = [
    derivative("euclidean_dist", x1=_first, x2=_second),
    derivative("minkowski_dist", joint={"x1, x2": _of_pairs}),
    derivative("pdist", input=lambda g, input, p, result: pdist_backward(g, input, p, result)),
]
