"""Losses against numbers and distributions."""

from __future__ import annotations

import math
import warnings
from typing import Any

from tensorplug.autograd import no_grad
from tensorplug.core import Tensor
from tensorplug.core.layers import seen_by_layers
from tensorplug.core.ops import broadcast_tensors, full_like, where, xlogy

from .._common import legacy_reduction, reduce, tensor

__all__ = [
    "gaussian_nll_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
]


# Under a second name, for the functions that take torch's argument `reduce`.
reduced = reduce


def _broadcast(input: Any, target: Any, name: str) -> tuple[Any, Any]:
    """Return both at one shape, with torch's warning if theirs differ."""
    tensor(input, name)
    tensor(target, name, "target")
    if tuple(target.shape) == tuple(input.shape):
        return input, target
    warnings.warn(
        f"Using a target size ({list(target.shape)}) that is different to the input size "
        f"({list(input.shape)}). This will likely lead to incorrect results due to broadcasting. Please "
        "ensure they have the same size.",
        UserWarning,
        stacklevel=3,
    )
    both = broadcast_tensors(input, target)
    return both[0], both[1]


def _weighted_mean(losses: Any, weight: Any, reduction: str, name: str) -> Any:
    """Reduce losses with a weight per element; the mean is divided by the sum of the weights."""
    if weight is None:
        return reduced(losses, reduction, name)
    if tuple(weight.shape) != tuple(losses.shape):
        raise ValueError(f"{name}(): Inputs and weight must have the same size.")
    weighted = losses * weight
    if reduction == "mean":
        return weighted.sum() / weight.sum()
    return reduced(weighted, reduction, name)


@seen_by_layers
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Return the squared differences, reduced.

    Examples
    --------
    >>> import tensorplug as tp
    >>> mse_loss(tp.tensor([1.0, 2.0]), tp.tensor([1.0, 4.0]))
    tensor(2.)
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    input, target = _broadcast(input, target, "mse_loss")
    return _weighted_mean((input - target).square(), weight, reduction, "mse_loss")


@seen_by_layers
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Return the absolute differences, reduced."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    input, target = _broadcast(input, target, "l1_loss")
    return _weighted_mean((input - target).abs(), weight, reduction, "l1_loss")


@seen_by_layers
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Return absolute differences, and where they are below `beta` their squares over ``2 * beta``.

    Raises
    ------
    ValueError
        If `beta` is negative.
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    input, target = _broadcast(input, target, "smooth_l1_loss")
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    distance = (input - target).abs()
    if beta == 0:
        return reduced(distance, reduction, "smooth_l1_loss")
    losses = where(distance < beta, 0.5 * distance * distance / beta, distance - 0.5 * beta)
    return reduced(losses, reduction, "smooth_l1_loss")


@seen_by_layers
def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Return half the squared differences, and beyond `delta` the line that goes on from there.

    Raises
    ------
    RuntimeError
        If `delta` is not positive.
    """
    input, target = _broadcast(input, target, "huber_loss")
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    distance = (input - target).abs()
    losses = where(distance < delta, 0.5 * distance * distance, delta * (distance - 0.5 * delta))
    if weight is not None:
        if tuple(weight.shape) != tuple(losses.shape):
            raise ValueError("huber_loss(): Inputs and weight must have the same size.")
        losses = losses * weight  # torch takes the plain mean here
    return reduced(losses, reduction, "huber_loss")


@seen_by_layers
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Return the pointwise divergence of `target` from log probabilities.

    Parameters
    ----------
    input : Tensor
        Log probabilities.
    target : Tensor
        Probabilities, or their logarithms with `log_target`.
    size_average, reduce : bool, optional
        Deprecated spellings of `reduction`.
    reduction : {"mean", "batchmean", "sum", "none"}
        "batchmean" divides by the batch size only, as the definition asks for.
    log_target : bool
        Whether `target` is in log space.
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    tensor(input, "kl_div")
    tensor(target, "kl_div", "target")
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition.",
            UserWarning,
            stacklevel=2,
        )
    if log_target:
        losses = target.exp() * (target - input)
    else:
        losses = xlogy(target, target) - target * input
    if reduction == "batchmean":
        return losses.sum() / input.shape[0] if input.ndim else losses.sum()
    return reduced(losses, reduction, "kl_div")


@seen_by_layers
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the negative log likelihood of counts under Poisson distributions.

    Parameters
    ----------
    input : Tensor
        The expected count, or its logarithm with `log_input`.
    target : Tensor
        The count.
    log_input : bool
        Whether `input` is in log space.
    full : bool
        Whether to add Stirling's approximation of the constant term, for counts above 1.
    size_average, reduce : bool, optional
        Deprecated spellings of `reduction`.
    eps : float
        Added to `input` before its logarithm is taken.
    reduction : {"mean", "sum", "none"}
        How the losses are put together.
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    tensor(input, "poisson_nll_loss")
    if log_input:
        losses = input.exp() - target * input
    else:
        losses = input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        losses = losses + where(target <= 1, 0.0, stirling)
    return reduced(losses, reduction, "poisson_nll_loss")


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Return the negative log likelihood of targets under normal distributions.

    Parameters
    ----------
    input, target : Tensor
        Mean and value.
    var : Tensor or float
        The variance, of the input's shape, or with one dimension less or of size 1.
    full : bool
        Whether to add the constant term.
    eps : float
        The least variance; the gradient ignores that.
    reduction : {"mean", "sum", "none"}
        How the losses are put together.

    Raises
    ------
    ValueError
        If a variance is negative, or its shape does not fit.
    """
    tensor(input, "gaussian_nll_loss")
    tensor(target, "gaussian_nll_loss", "target")
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = full_like(input, var, requires_grad=False)
    elif not var.is_meta and bool((var < 0).any()):
        raise ValueError("var has negative entry/entries")
    if tuple(var.shape) != tuple(input.shape):
        if tuple(input.shape[:-1]) == tuple(var.shape):
            var = var.unsqueeze(-1)
        elif tuple(input.shape[:-1]) != tuple(var.shape[:-1]) or var.shape[-1] != 1:
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    var = var.clone()
    with no_grad():
        var.clamp_(min=eps)
    losses = 0.5 * (var.log() + (input - target).square() / var)
    if full:
        losses = losses + 0.5 * math.log(2 * math.pi)
    return reduced(losses, reduction, "gaussian_nll_loss")
