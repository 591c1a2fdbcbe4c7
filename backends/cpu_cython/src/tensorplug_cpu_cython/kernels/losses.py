"""Kernels of losses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable, Shape

from .. import losses, losses_ctc, losses_margin
from .._dtypes import FLOATS
from ..below import below
from ..halves import add_floats
from ..pointwise_fused import Fused
from ..reductions import SUM, Reduction


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    for name, logs in (("cross_entropy", False), ("nll_loss", True)):
        loss, gradient = _of(logs)
        table.add(name, loss, dtypes=FLOATS)
        table.add(f"{name}_backward", gradient, dtypes=FLOATS)
    for name, scaled in (("smooth_l1", True), ("huber", False)):
        loss, gradient = _of_differences(name, scaled)
        table.add(f"{name}_loss", loss, dtypes=FLOATS)
        table.add(f"{name}_loss_backward", gradient, dtypes=FLOATS)
    table.add("mse_loss_backward", mse_loss_backward, dtypes=FLOATS)
    for function in (
        mse_loss,
        multi_margin_loss,
        multi_margin_loss_backward,
        multilabel_margin_loss,
        multilabel_margin_loss_backward,
        ctc_loss,
        ctc_loss_backward,
    ):
        add_floats(table, function.__name__, function)


_MEANS = {
    is_mean: Reduction(SUM, below("mean" if is_mean else "sum"), is_mean).call
    for is_mean in (True, False)
}


def _reduced_losses(losses: Any, shape: Shape, reduction: str) -> Any:
    if reduction == "none":
        return losses.reshape(shape)
    return _MEANS[reduction == "mean"](losses, tuple(range(losses.ndim)), False)


_square_error, _bounded_slope = Fused("square_error").call, Fused("huber_gradient").call


def mse_loss(input: Any, target: Any, reduction: str, weight: Any) -> Any:
    """Return the squares of the differences."""
    losses = _square_error((input, target))
    if weight is None:
        return _reduced_losses(losses, losses.shape, reduction)
    losses = losses * weight
    if reduction != "mean":
        return _reduced_losses(losses, losses.shape, reduction)
    return np.asarray(losses.sum(dtype=np.float64) / weight.sum(dtype=np.float64), input.dtype)


def mse_loss_backward(g: Any, input: Any, target: Any, reduction: str) -> Any:
    """Return the gradient of the loss without weights."""
    return _bounded_slope((input, target, g), (math.inf, 2 * _share(input.size, reduction)))


def _share(count: int, reduction: str) -> float:
    """Return the part of the gradient of reduced losses that each gets."""
    return 1 / max(count, 1) if reduction == "mean" else 1.0


def multi_margin_loss(
    input: Any, target: Any, p: int, margin: float, weight: Any, reduction: str
) -> Any:
    """Return by how much other classes come within a margin of the target class."""
    losses = losses_margin.margin_losses(input, target, weight, p == 2, margin, False)
    return _reduced_losses(losses, target.shape, reduction)


def multi_margin_loss_backward(
    g: Any, input: Any, target: Any, p: int, margin: float, weight: Any, reduction: str
) -> Any:
    """Return the gradient of the scores."""
    share = _share(target.size, reduction)
    return losses_margin.margin_gradient(
        g.reshape(-1) if reduction == "none" else g,
        input,
        target,
        weight,
        p == 2,
        margin,
        False,
        share,
    )


def multilabel_margin_loss(input: Any, target: Any, reduction: str) -> Any:
    """Return by how much other classes come within 1 of each of several target classes."""
    losses = losses_margin.margin_losses(input, target, None, False, 1.0, True)
    return _reduced_losses(losses, input.shape[:-1], reduction)


def multilabel_margin_loss_backward(g: Any, input: Any, target: Any, reduction: str) -> Any:
    """Return the gradient of the scores."""
    share = _share(len(input) if input.ndim > 1 else 1, reduction)
    g = g.reshape(-1) if reduction == "none" else g
    return losses_margin.margin_gradient(g, input, target, None, False, 1.0, True, share)


def ctc_loss(log_probs: Any, *arguments: Any) -> Any:
    """Return the negative log likelihood of label sequences."""
    return losses_ctc.ctc_loss(log_probs, *arguments)


def ctc_loss_backward(g: Any, log_probs: Any, *arguments: Any) -> Any:
    """Return the gradient of the log probabilities; where a loss is infinite, or replaced, it is zero."""
    return losses_ctc.ctc_loss_backward(g, log_probs, *arguments[:-1])


def _of(logs: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the kernels of the loss of scores, or of log probabilities, and of its gradient."""

    def loss(input: Any, target: Any, weight: Any, ignore_index: int, reduction: str) -> Any:
        return losses.cross_entropy(input, target, weight, ignore_index, reduction, logs, _reduced)

    def gradient(
        g: Any, input: Any, target: Any, weight: Any, ignore_index: int, reduction: str
    ) -> Any:
        return losses.cross_entropy_gradient(
            g, input, target, weight, ignore_index, reduction, logs, _no_gradient
        )

    return loss, gradient


def _of_differences(name: str, scaled: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the kernels of a loss that is quadratic up to a bound, and of its gradient.

    It is `scaled` if all of it is divided by the bound.
    """
    each, slope = Fused(name).call, Fused("huber_gradient").call

    def loss(input: Any, target: Any, reduction: str, bound: float, weight: Any = None) -> Any:
        losses = each((input, target), (bound, 1 / bound if bound else 0.0))
        if weight is not None:
            losses = losses * weight
        return _reduced_losses(losses, losses.shape, reduction)

    def gradient(g: Any, input: Any, target: Any, reduction: str, bound: float) -> Any:
        factor = _share(input.size, reduction)
        if scaled and not bound:
            return g * np.sign(input - target) * input.dtype.type(factor)
        return slope((input, target, g), (bound, factor / bound if scaled else factor))

    return loss, gradient


# For what the compiled ones decline: no samples, no classes, and classes that do not exist.


def _reduced(input: Any, target: Any, _: Any, ignore_index: int, reduction: str) -> Any:
    classes = input.shape[1]
    wrong = (target != ignore_index) & ((target < 0) | (target >= classes))
    if wrong.any():
        raise IndexError(
            f"Target {target[wrong].reshape(-1)[0]} is out of bounds. There are {classes} classes"
        )
    if reduction == "none":
        return np.zeros(target.shape, input.dtype)
    return np.array(np.nan if reduction == "mean" else 0, input.dtype)


def _no_gradient(_: Any, input: Any, *__: Any) -> Any:
    return np.zeros(input.shape, input.dtype)
