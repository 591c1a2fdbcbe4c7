"""Derivatives of softmax and its kin, from their results."""

from __future__ import annotations

from typing import Any

from tensorplug.core.ops.softmax import _log_softmax_gradient, _softmax_gradient
from tensorplug.core.shapes import Shape

from ..derivatives import derivative
from .reductions import unsqueezed


def _logsumexp(
    g: Any, input: Any, result: Any, input_shape: Shape, dim: Shape, keepdim: bool
) -> Any:
    share = (input - unsqueezed(result, input_shape, dim, keepdim)).exp()
    return unsqueezed(g, input_shape, dim, keepdim) * share.conj()


DERIVATIVES = [
    derivative("_softmax", input=lambda g, result, dim: _softmax_gradient(g, result, dim)),
    derivative("_log_softmax", input=lambda g, result, dim: _log_softmax_gradient(g, result, dim)),
    derivative("_logsumexp", input=_logsumexp),
]
