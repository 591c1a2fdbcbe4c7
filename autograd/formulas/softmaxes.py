"""Derivatives of softmax and its kin, from their results."""

from __future__ import annotations

from typing import Any

from tensorplug.core.shapes import Shape

from ..derivatives import derivative
from .reductions import unsqueezed


def _softmax(g: Any, result: Any, dim: int) -> Any:
    weighted = g * result
    return weighted - result * weighted.sum(dim, True)


def _log_softmax(g: Any, result: Any, dim: int) -> Any:
    return g - result.exp() * g.sum(dim, True)


def _logsumexp(
    g: Any, input: Any, result: Any, input_shape: Shape, dim: Shape, keepdim: bool
) -> Any:
    share = (input - unsqueezed(result, input_shape, dim, keepdim)).exp()
    return unsqueezed(g, input_shape, dim, keepdim) * share.conj()


DERIVATIVES = [
    derivative("_softmax", input=_softmax),
    derivative("_log_softmax", input=_log_softmax),
    derivative("_logsumexp", input=_logsumexp),
]
