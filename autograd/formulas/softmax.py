"""Derivatives of softmax and its kin, from their results."""

from __future__ import annotations

from typing import Any

from tensorplug.core.ops.softmax import log_softmax_backward, softmax_backward
from tensorplug.core.tensor.shapes import Shape

from ..engine.derivatives import derivative
from ..forward.tangents import tangent
from .reductions import unsqueezed


def _logsumexp(
    g: Any, input: Any, result: Any, input_shape: Shape, dim: Shape, keepdim: bool
) -> Any:
    share = (input - unsqueezed(result, input_shape, dim, keepdim)).exp()
    return unsqueezed(g, input_shape, dim, keepdim) * share._conj()


def _softmax_tangent(t: Any, result: Any, dim: int) -> Any:
    weighted = t * result
    return weighted - result * weighted.sum(dim, True)


def _log_softmax_tangent(t: Any, result: Any, dim: int) -> Any:
    return t - (result.exp() * t).sum(dim, True)


DERIVATIVES = [
    derivative("softmax", input=lambda g, result, dim: softmax_backward(g, result, dim)),
    derivative("log_softmax", input=lambda g, result, dim: log_softmax_backward(g, result, dim)),
    derivative("logsumexp", input=_logsumexp),
]


TANGENTS = [
    tangent("softmax", input=_softmax_tangent),
    tangent("log_softmax", input=_log_softmax_tangent),
]
