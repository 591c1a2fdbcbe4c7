"""The parts of losses that a backend or a formula does better than their bodies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.autograd import derivative
from tensorplug.core.operators import composite
from tensorplug.core.ops import log_softmax, ones, softmax, where, zeros

if TYPE_CHECKING:
    from tensorplug.core import Tensor


@composite(method=False, outputs="losses, weights")
def negative_log_likelihood(
    input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """Return what each sample loses, and what it weighs.

    Parameters
    ----------
    input : Tensor
        Log probabilities, (N, C, *positions).
    target : Tensor
        int64, (N, *positions), each a class or `ignore_index`.
    weight : Tensor, optional
        (C,).
    ignore_index : int
        Targets of this value lose nothing and weigh nothing.

    Returns
    -------
    losses, weights : Tensor
        (N, *positions), of the input's dtype.
    """
    ignored = target == ignore_index
    chosen = where(ignored, 0, target)
    if weight is None:
        weight = ones(input._shape[1], dtype=input.dtype, device=input.device)
    # Comes first: of a class that is out of range it says IndexError, as torch does.
    table = weight.index_select(0, chosen.reshape(-1)).reshape(chosen._shape)
    weights = where(ignored, 0.0, table)
    picked = input.gather(1, chosen.unsqueeze(1)).squeeze(1)
    # Not -picked * weights alone: an infinite loss that is ignored would be NaN.
    return where(ignored, 0.0, -picked * weights), weights


def _nll_gradient(g_losses: Any, target: Any, weights: Any, input_shape: Any) -> Any:
    # What is ignored weighs zero, so any class may take its gradient.
    classes = input_shape[1]
    chosen = where((target < 0).logical_or(target >= classes), 0, target).unsqueeze(1)
    values = (-g_losses * weights).unsqueeze(1)
    empty = zeros(input_shape, dtype=values.dtype, device=values.device)
    return empty.scatter_add(1, chosen, values)


def _nll_weight_gradient(
    g_losses: Any, g_weights: Any, input: Any, target: Any, weight_shape: Any, ignore_index: int
) -> Any:
    ignored = target == ignore_index
    chosen = where(ignored, 0, target)
    picked = input.gather(1, chosen.unsqueeze(1)).squeeze(1)
    values = where(ignored, 0.0, g_weights - g_losses * picked).reshape(-1)
    empty = zeros(weight_shape, dtype=values.dtype, device=values.device)
    return empty.scatter_add(0, chosen.reshape(-1), values)


@composite(method=False)
def class_nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str
) -> Tensor:
    """Return the negative log-likelihood of target classes.

    Parameters
    ----------
    input, target, weight, ignore_index
        As for :func:`negative_log_likelihood`.
    reduction : {"mean", "sum", "none"}
        The mean is weighted.

    Returns
    -------
    Tensor
        (), or (N, *positions) for "none".
    """
    losses, weights = negative_log_likelihood(input, target, weight, ignore_index)
    if reduction == "none":
        return losses
    total = losses.sum()
    return total if reduction == "sum" else total / weights.sum()


@composite(method=False)
def class_nll_loss_gradient(
    g: Tensor,
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
) -> Tensor:
    """Return the gradient of :func:`class_nll_loss`'s input, of which only the shape counts."""
    ignored = target == ignore_index
    chosen = where(ignored, 0, target)
    share = _shares(g, ignored, chosen, weight, reduction)
    empty = zeros(input._shape, dtype=share.dtype, device=share.device)
    return empty.scatter_add(1, chosen.unsqueeze(1), -share.unsqueeze(1))


@composite(method=False)
def class_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str
) -> Tensor:
    """Return the cross-entropy between scores and target classes.

    Parameters
    ----------
    input : Tensor
        Scores before softmax, (N, C, *positions).
    target, weight, ignore_index, reduction
        As for :func:`class_nll_loss`.

    Returns
    -------
    Tensor
        (), or (N, *positions) for "none".
    """
    return class_nll_loss(log_softmax(input, 1), target, weight, ignore_index, reduction)


@composite(method=False)
def class_cross_entropy_gradient(
    g: Tensor,
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
) -> Tensor:
    """Return the gradient of :func:`class_cross_entropy`'s input: the softmax less what it should be."""
    ignored = target == ignore_index
    chosen = where(ignored, 0, target)
    share = _shares(g, ignored, chosen, weight, reduction).unsqueeze(1)
    return (softmax(input, 1) * share).scatter_add(1, chosen.unsqueeze(1), -share)


def _shares(g: Any, ignored: Any, chosen: Any, weight: Any, reduction: str) -> Any:
    """Return the gradient of each sample's loss before it is weighted."""
    if weight is None:
        weights = where(ignored, 0.0, 1.0).to(g.dtype)
    else:
        weights = weight.index_select(0, chosen.reshape(-1)).reshape(chosen.shape)
        weights = where(ignored, 0.0, weights)
    if reduction == "mean":
        # Where all are ignored nothing is to be learned, whatever the mean of nothing is.
        total = weights.sum()
        weights = weights / where(total == 0, 1.0, total)
    return where(ignored, 0.0, g * weights)


def _class_weight_gradient(
    g: Any, logs: Any, target: Any, weight: Any, ignore_index: int, reduction: str
) -> Any:
    ignored = target == ignore_index
    chosen = where(ignored, 0, target)
    values = -logs.gather(1, chosen.unsqueeze(1)).squeeze(1)
    if reduction == "mean":
        table = weight.index_select(0, chosen.reshape(-1)).reshape(chosen.shape)
        weights = where(ignored, 0.0, table)
        total = weights.sum()
        values = (values - where(ignored, 0.0, values * weights).sum() / total) / total
    values = where(ignored, 0.0, g * values).reshape(-1)
    empty = zeros(weight.shape, dtype=values.dtype, device=values.device)
    return empty.scatter_add(0, chosen.reshape(-1), values)


@composite(method=False)
def binary_cross_entropy_terms(input: Tensor, target: Tensor) -> Tensor:
    """Return -(t log x + (1 - t) log(1 - x)), with logarithms cut off at -100."""
    logs = input.log().clamp(min=-100)
    return (target - 1) * (-input).log1p().clamp(min=-100) - target * logs


DERIVATIVES = [
    derivative("negative_log_likelihood", input=_nll_gradient, weight=_nll_weight_gradient),
    derivative(
        "class_nll_loss",
        input=lambda g, input, target, weight, ignore_index, reduction: class_nll_loss_gradient(
            g, input, target, weight, ignore_index, reduction
        ),
        weight=lambda g, input, target, weight, ignore_index, reduction: _class_weight_gradient(
            g, input, target, weight, ignore_index, reduction
        ),
    ),
    derivative(
        "class_cross_entropy",
        input=lambda g, input, target, weight, ignore_index, reduction: (
            class_cross_entropy_gradient(g, input, target, weight, ignore_index, reduction)
        ),
        weight=lambda g, input, target, weight, ignore_index, reduction: _class_weight_gradient(
            g, log_softmax(input, 1), target, weight, ignore_index, reduction
        ),
    ),
    derivative(
        "binary_cross_entropy_terms",
        input=lambda g, input, target: (
            g * (input - target) / (input * (1 - input)).clamp(min=1e-12)
        ),
        target=lambda g, input: (
            g * ((-input).log1p().clamp(min=-100) - input.log().clamp(min=-100))
        ),
    ),
]
