"""Losses against classes, probabilities and numbers."""

from __future__ import annotations

import math
import warnings
from typing import Any

from tensorplug.autograd import no_grad
from tensorplug.core import Tensor
from tensorplug.core.dtypes import FLOATING, int64, uint8
from tensorplug.core.layers import seen_by_layers
from tensorplug.core.ops import broadcast_tensors, full_like, where, xlogy

from ..ops.activation import log_sigmoid
from ..ops.losses import binary_cross_entropy_terms, negative_log_likelihood
from ._common import legacy_reduction, reduce, tensor
from .activation import log_softmax
from .linear import linear

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "gaussian_nll_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "linear_cross_entropy",
    "mse_loss",
    "nll_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
]


def _check_classes(input: Any, target: Any, weight: Any, name: str) -> None:
    """Check the shapes of (C,) with (), or of (N, C, *) with (N, *)."""
    if target.dtype is not int64 and target.dtype is not uint8:
        raise RuntimeError(f"{name}(): expected target of dtype int64, but got {target.dtype}")
    classes = input.shape[0 if input.ndim == 1 else 1]
    if input.ndim == 1:
        if target.ndim > 1 or (target.ndim == 1 and target.shape[0] != 1):
            raise ValueError(
                f"Expected target of no dimension for input of shape {list(input.shape)}, got "
                f"{list(target.shape)}"
            )
    else:
        if input.shape[0] != (target.shape[0] if target.ndim else None):
            got = target.shape[0] if target.ndim else "none"
            raise ValueError(
                f"Expected input batch_size ({input.shape[0]}) to match target batch_size ({got})."
            )
        wanted = (input.shape[0], *input.shape[2:])
        if tuple(target.shape) != wanted:
            raise RuntimeError(
                f"{name}(): Expected target size {list(wanted)}, got {list(target.shape)}"
            )
    if weight is not None and tuple(weight.shape) != (classes,):
        raise RuntimeError(
            f"{name}(): weight tensor should be defined either for all {classes} classes or no classes "
            f"but got weight tensor of shape: {list(weight.shape)}"
        )


@seen_by_layers
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the negative log likelihood of the target classes.

    Parameters
    ----------
    input : Tensor
        Log probabilities, (C,), (N, C) or (N, C, *positions).
    target : Tensor
        int64, (), (N,) or (N, *positions): classes from 0 to C - 1, or `ignore_index`.
    weight : Tensor, optional
        (C,): what each class weighs.
    size_average, reduce : bool, optional
        Deprecated spellings of `reduction`.
    ignore_index : int
        Targets of this value count for nothing.
    reduction : {"mean", "sum", "none"}
        The mean is weighted.

    Raises
    ------
    IndexError
        If a class is out of range.
    RuntimeError, ValueError
        If shapes or dtypes do not fit.
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    return _nll(input, target, weight, ignore_index, reduction, "nll_loss")


def _nll(input: Any, target: Any, weight: Any, ignore_index: int, reduction: str, name: str) -> Any:
    tensor(input, name)
    tensor(target, name, "target")
    if not input.ndim:
        raise ValueError(f"{name}(): expected 1 or more dimensions (got 0)")
    _check_classes(input, target, weight, name)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    target = target.to(int64)
    if input.ndim == 1:
        losses, weights = negative_log_likelihood(
            input.unsqueeze(0), target.reshape(1), weight, ignore_index
        )
        losses, weights = losses.reshape(target.shape), weights.reshape(target.shape)
    else:
        losses, weights = negative_log_likelihood(input, target, weight, ignore_index)
    if reduction == "none":
        return losses
    total = losses.sum()
    return total if reduction == "sum" else total / weights.sum()


@seen_by_layers
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return the cross-entropy between unnormalised scores and target classes or probabilities.

    Parameters
    ----------
    input : Tensor
        Scores before softmax, (C,), (N, C) or (N, C, *positions).
    target : Tensor
        Either int64 classes, (), (N,) or (N, *positions); or probabilities of the input's shape.
    weight : Tensor, optional
        (C,): what each class weighs.
    size_average, reduce : bool, optional
        Deprecated spellings of `reduction`.
    ignore_index : int
        Target classes of this value count for nothing.
    reduction : {"mean", "sum", "none"}
        The mean over classes is weighted.
    label_smoothing : float
        What share of the target is spread evenly over all classes (Szegedy et al. 2015).

    Raises
    ------
    IndexError
        If a class is out of range.
    RuntimeError, ValueError
        If shapes or dtypes do not fit.

    Examples
    --------
    >>> import tensorplug as tp
    >>> cross_entropy(tp.tensor([[0.0, 0.0], [0.0, 100.0]]), tp.tensor([0, 1]))
    tensor(0.3466)
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    tensor(input, "cross_entropy")
    tensor(target, "cross_entropy", "target")
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if not input.ndim:
        raise RuntimeError("cross_entropy(): expected input of 1 or more dimensions, got 0")
    class_dim = 0 if input.ndim == 1 else 1
    if tuple(input.shape) == tuple(target.shape) and target.dtype.category >= FLOATING:
        return _cross_entropy_of_probabilities(
            input, target, weight, reduction, label_smoothing, class_dim
        )
    if tuple(input.shape) == tuple(target.shape) and input.ndim > 1:
        raise RuntimeError(
            f"Expected floating point type for target with class probabilities, got {target.dtype}"
        )
    logs = log_softmax(input, class_dim)
    loss = _nll(logs, target, weight, ignore_index, reduction, "cross_entropy")
    if not label_smoothing:
        return loss
    classes = input.shape[class_dim]
    ignored = target == ignore_index
    spread = -_weighted(logs, weight, class_dim).sum(class_dim)
    spread = where(ignored, 0.0, spread.reshape(target.shape))
    if reduction == "mean":
        if weight is None:
            spread = spread.sum() / ignored.logical_not().sum()
        else:
            table = weight.index_select(0, where(ignored, 0, target).reshape(-1))
            spread = spread.sum() / where(ignored.reshape(-1), 0.0, table).sum()
    elif reduction == "sum":
        spread = spread.sum()
    return loss * (1 - label_smoothing) + spread * (label_smoothing / classes)


def _weighted(logs: Any, weight: Any, class_dim: int) -> Any:
    if weight is None:
        return logs
    return logs * weight.reshape(-1, *[1] * (logs.ndim - class_dim - 1))


def _cross_entropy_of_probabilities(
    input: Any, target: Any, weight: Any, reduction: str, smoothing: float, class_dim: int
) -> Any:
    classes = input.shape[class_dim]
    if weight is not None and tuple(weight.shape) != (classes,):
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {classes} classes or no "
            f"classes but got weight tensor of shape: {list(weight.shape)}"
        )
    if smoothing:
        target = target * (1 - smoothing) + smoothing / classes
    logs = _weighted(log_softmax(input, class_dim), weight, class_dim)
    losses = -(logs * target).sum(class_dim)
    if reduction == "mean":
        return losses.sum() / (input.numel() / classes)
    return reduced(losses, reduction, "cross_entropy")


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return :func:`cross_entropy` of ``linear(input, linear_weight, linear_bias)``."""
    scores = linear(input, linear_weight, linear_bias)
    return cross_entropy(
        scores,
        target,
        weight,
        ignore_index=-100 if ignore_index is None else ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


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
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the cross-entropy of probabilities, each between 0 and 1.

    Parameters
    ----------
    input, target : Tensor
        Of one shape; logarithms of the input count as at least -100.
    weight : Tensor, optional
        Broadcast to that shape.
    size_average, reduce : bool, optional
        Deprecated spellings of `reduction`.
    reduction : {"mean", "sum", "none"}
        How the losses are put together.

    Raises
    ------
    RuntimeError
        If an input is no probability.
    ValueError
        If the shapes differ.
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    tensor(input, "binary_cross_entropy")
    tensor(target, "binary_cross_entropy", "target")
    if tuple(target.shape) != tuple(input.shape):
        raise ValueError(
            f"Using a target size ({list(target.shape)}) that is different to the input size "
            f"({list(input.shape)}) is deprecated. Please ensure they have the same size."
        )
    if input.device.type == "cpu" and not bool(((input >= 0) & (input <= 1)).all()):
        raise RuntimeError("all elements of input should be between 0 and 1")
    losses = binary_cross_entropy_terms(input, target)
    if weight is not None:
        losses = losses * weight.expand(losses.shape)
    return reduced(losses, reduction, "binary_cross_entropy")


@seen_by_layers
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Return the cross-entropy of ``sigmoid(input)``, computed without overflow.

    Parameters
    ----------
    input, target : Tensor
        Of one shape; scores before sigmoid, and probabilities.
    weight : Tensor, optional
        Broadcast to that shape.
    size_average, reduce : bool, optional
        Deprecated spellings of `reduction`.
    reduction : {"mean", "sum", "none"}
        How the losses are put together.
    pos_weight : Tensor, optional
        What the positive targets weigh, broadcast to that shape.

    Raises
    ------
    ValueError
        If the shapes differ.

    Examples
    --------
    >>> import tensorplug as tp
    >>> binary_cross_entropy_with_logits(tp.tensor([1000.0]), tp.tensor([0.0]))
    tensor(1000.)
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    tensor(input, "binary_cross_entropy_with_logits")
    tensor(target, "binary_cross_entropy_with_logits", "target")
    if tuple(target.shape) != tuple(input.shape):
        raise ValueError(
            f"Target size ({list(target.shape)}) must be the same as input size ({list(input.shape)})"
        )
    logs = log_sigmoid(input)
    if pos_weight is not None:
        logs = logs * ((pos_weight - 1) * target + 1)
    losses = (1 - target) * input - logs
    if weight is not None:
        losses = losses * weight
    return reduced(losses, reduction, "binary_cross_entropy_with_logits")


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
