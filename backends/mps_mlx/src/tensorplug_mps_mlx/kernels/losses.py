"""Kernels of losses of classes. A target that is no class makes NaN: an error would evaluate the graph."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import ArrayApiBackend

from .._mlx import mx
from ..dtypes import FLOATS


def _shares(input: Any, target: Any, weight: Any, ignore_index: int) -> tuple[Any, Any]:
    """Return the positions of target classes, and what each target counts in float32."""
    classes = input.shape[1]
    valid = mx.logical_and(target >= 0, target < classes)
    position = mx.clip(target, 0, classes - 1)
    share = mx.array(1.0) if weight is None else mx.take(weight.astype(mx.float32), position)
    share = mx.where(valid, share, mx.nan)
    return mx.expand_dims(position, 1), mx.where(target == ignore_index, 0.0, share)


def _reduced(losses: Any, shares: Any, reduction: str, dtype: Any) -> Any:
    if reduction == "none":
        return losses.astype(dtype)
    if not losses.size:
        return mx.array(mx.nan if reduction == "mean" else 0.0, dtype=dtype)
    total = mx.sum(losses)
    return (total / mx.sum(shares) if reduction == "mean" else total).astype(dtype)


def _nll(scores: Any, input: Any, target: Any, weight: Any, ignore: int, reduction: str) -> Any:
    position, share = _shares(input, target, weight, ignore)
    chosen = mx.squeeze(mx.take_along_axis(scores, position, axis=1), 1)
    losses = mx.where(share == 0, 0.0, -chosen * share)
    return _reduced(losses, share, reduction, input.dtype)


def _one_hot(
    g: Any, input: Any, target: Any, weight: Any, ignore: int, reduction: str
) -> tuple[Any, Any]:
    """Return what each target's loss counts in the gradient, along classes, and where its class is."""
    position, share = _shares(input, target, weight, ignore)
    each = g.astype(mx.float32) * share
    if reduction == "mean":
        each = each / mx.sum(share)
    shape = [input.shape[1] if d == 1 else 1 for d in range(input.ndim)]
    hot = mx.reshape(mx.arange(input.shape[1]), shape) == position
    return mx.expand_dims(each, 1), hot


def _log_softmax(input: Any) -> Any:
    wide = input.astype(mx.float32)
    if not input.size:
        return wide
    return wide - mx.logsumexp(wide, axis=1, keepdims=True)


def nll_loss(input: Any, target: Any, weight: Any, ignore_index: int, reduction: str) -> Any:
    """Return the negative log-likelihood of target classes."""
    scores = input.astype(mx.float32)
    return _nll(scores, input, target, weight, ignore_index, reduction)


def cross_entropy(input: Any, target: Any, weight: Any, ignore_index: int, reduction: str) -> Any:
    """Return the cross-entropy between scores and target classes."""
    return _nll(_log_softmax(input), input, target, weight, ignore_index, reduction)


def nll_loss_backward(
    g: Any, input: Any, target: Any, weight: Any, ignore_index: int, reduction: str
) -> Any:
    """Return the gradient of :func:`nll_loss`'s input."""
    if not input.size:
        return input
    each, hot = _one_hot(g, input, target, weight, ignore_index, reduction)
    return mx.where(hot, -each, 0.0).astype(input.dtype)


def cross_entropy_backward(
    g: Any, input: Any, target: Any, weight: Any, ignore_index: int, reduction: str
) -> Any:
    """Return the gradient of :func:`cross_entropy`'s input."""
    each, hot = _one_hot(g, input, target, weight, ignore_index, reduction)
    if not input.size:
        return input
    chances = mx.softmax(input.astype(mx.float32), axis=1)
    gradient = each * (chances - hot.astype(mx.float32))
    return mx.where(each == 0, 0.0, gradient).astype(input.dtype)


def build(plugin: ArrayApiBackend) -> None:
    """Add these kernels to the plugin."""
    for function in (nll_loss, cross_entropy, nll_loss_backward, cross_entropy_backward):
        plugin.kernel(dtypes=FLOATS)(function)
