"""Losses of classes: negative log-likelihood and cross-entropy."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.dtypes import FLOATING, int64, uint8
from tensorplug.core.layers import seen_by_layers
from tensorplug.core.ops import where

from ...ops.activation import logsigmoid
from ...ops.losses import binary_cross_entropy_terms, class_cross_entropy, class_nll_loss
from .._common import legacy_reduction, tensor
from ..linear import linear
from ..softmax import log_softmax
from .regression import reduced

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "linear_cross_entropy",
    "nll_loss",
]


def _check_classes(input: Any, target: Any, weight: Any, name: str) -> None:
    """Check the shapes of (C,) with (), or of (N, C, *) with (N, *)."""
    shape, wanted = input._shape, target._shape
    dtype = target._kind.dtype
    if dtype is not int64 and dtype is not uint8:
        raise RuntimeError(f"{name}(): expected target of dtype int64, but got {dtype}")
    if len(shape) == 1:
        if len(wanted) > 1 or (len(wanted) == 1 and wanted[0] != 1):
            raise ValueError(
                f"Expected target of no dimension for input of shape {list(shape)}, got "
                f"{list(wanted)}"
            )
    elif wanted != (shape[0], *shape[2:]):
        if not wanted or shape[0] != wanted[0]:
            raise ValueError(
                f"Expected input batch_size ({shape[0]}) to match target batch_size "
                f"({wanted[0] if wanted else 'none'})."
            )
        raise RuntimeError(
            f"{name}(): Expected target size {[shape[0], *shape[2:]]}, got {list(wanted)}"
        )
    classes = shape[0 if len(shape) == 1 else 1]
    if weight is not None and weight._shape != (classes,):
        raise RuntimeError(
            f"{name}(): weight tensor should be defined either for all {classes} classes or no classes "
            f"but got weight tensor of shape: {list(weight._shape)}"
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
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce, reduction)
    return _nll(input, target, weight, ignore_index, reduction, "nll_loss")


def _nll(input: Any, target: Any, weight: Any, ignore_index: int, reduction: str, name: str) -> Any:
    target = _checked(input, target, weight, reduction, name)
    if len(input._shape) > 1:
        return class_nll_loss(input, target, weight, ignore_index, reduction)
    loss = class_nll_loss(input.unsqueeze(0), target.reshape(1), weight, ignore_index, reduction)
    return loss.reshape(target.shape) if reduction == "none" else loss


def _checked(input: Any, target: Any, weight: Any, reduction: str, name: str) -> Any:
    """Return the target as int64, once all fits."""
    tensor(input, name)
    tensor(target, name, "target")
    if not input._shape:
        raise ValueError(f"{name}(): expected 1 or more dimensions (got 0)")
    _check_classes(input, target, weight, name)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return target if target._kind.dtype is int64 else target.to(int64)


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
    shape = input._shape
    if not shape:
        raise RuntimeError("cross_entropy(): expected input of 1 or more dimensions, got 0")
    class_dim = 0 if len(shape) == 1 else 1
    if shape == target._shape:
        if target.dtype.category >= FLOATING:
            return _cross_entropy_of_probabilities(
                input, target, weight, reduction, label_smoothing, class_dim
            )
        if class_dim:
            raise RuntimeError(
                f"Expected floating point type for target with class probabilities, got {target.dtype}"
            )
    if not label_smoothing:
        target = _checked(input, target, weight, reduction, "cross_entropy")
        if class_dim:
            return class_cross_entropy(input, target, weight, ignore_index, reduction)
        scores, label = input.unsqueeze(0), target.reshape(1)
        loss = class_cross_entropy(scores, label, weight, ignore_index, reduction)
        return loss.reshape(target.shape) if reduction == "none" else loss
    logs = log_softmax(input, class_dim)
    loss = _nll(logs, target, weight, ignore_index, reduction, "cross_entropy")
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
    logs = logsigmoid(input)
    if pos_weight is not None:
        logs = logs * ((pos_weight - 1) * target + 1)
    losses = (1 - target) * input - logs
    if weight is not None:
        losses = losses * weight
    return reduced(losses, reduction, "binary_cross_entropy_with_logits")
