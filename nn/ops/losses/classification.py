"""Losses of classes: negative log-likelihood and cross-entropy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tensorplug.autograd import derivative
from tensorplug.core.device.dtypes import FLOATING, DType, int64, result_dtype, scalar_type, uint8
from tensorplug.core.dispatch.op_registry import Delegated, composite
from tensorplug.core.ops import log_softmax, ones, softmax, where, zeros
from tensorplug.core.ops.comparison import is_within
from tensorplug.core.ops.rules import cast, in_float32
from tensorplug.core.tensor.predicates import all_samples

from ..activation import logsigmoid
from ..linear import linear
from .declaration import (
    check_reduction,
    check_tensors,
    check_weight,
    legacy_reduction,
    loss,
    reduced,
)

if TYPE_CHECKING:
    from tensorplug.core import Tensor


def _check_classes(input: Any, target: Any, weight: Any, name: str) -> None:
    """Check the shapes of (C,) with (), or of (N, C, *) with (N, *)."""
    shape, wanted = input._shape, target._shape
    dtype = target._key.dtype
    if dtype is not int64 and dtype is not uint8:
        raise RuntimeError(
            f"{name}(): expected target dtype to be Long or Byte, but got {scalar_type(dtype)}"
        )
    if len(shape) == 1 and len(wanted) == 1 and wanted[0] != 1:
        raise ValueError(
            f"For 1D input, 1D target must have size 1, but got target size: {wanted[0]}"
        )
    if len(shape) == 1:
        if len(wanted) > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    elif wanted != (shape[0], *shape[2:]):
        if not wanted or shape[0] != wanted[0]:
            raise ValueError(
                f"Expected input batch_size ({shape[0]}) to match target batch_size "
                f"({wanted[0] if wanted else 'none'})."
            )
        if len(shape) == 2:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if len(shape) == 4 and len(wanted) != 3:
            raise RuntimeError(
                "only batches of spatial targets supported (3D tensors) but got targets of dimension: "
                f"{len(wanted)}"
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
    check_weight(input, weight)


def _checked(input: Any, target: Any, weight: Any, reduction: str, name: str) -> Any:
    """Return the target as int64, once all fits."""
    check_tensors(name, input=input, target=target)
    if not input._shape:
        raise ValueError(f"{name}(): expected 1 or more dimensions (got 0)")
    _check_classes(input, target, weight, name)
    check_reduction(reduction)
    return target if target._key.dtype is int64 else target.to(int64)


def _canonical_nll(input: Any, target: Any, weight: Any, ignore_index: int, reduction: str) -> Any:
    target = _checked(input, target, weight, reduction, "nll_loss")
    if input._key.dtype.category < FLOATING:
        raise NotImplementedError(
            f'nll_loss(): "nll_loss" not implemented for {scalar_type(input.dtype)!r}: log probabilities '
            "are floating-point numbers"
        )
    if len(input._shape) > 1:
        return input, target, weight, ignore_index, reduction
    return Delegated(_of_one_sample(nll_loss, input, target, weight, ignore_index, reduction))


def _of_one_sample(
    function: Any, input: Any, target: Any, weight: Any, ignore_index: int, reduction: str
) -> Any:
    """Return a loss of (C,) and one class."""
    result = function(
        input.unsqueeze(0),
        target.reshape(1),
        weight,
        ignore_index=ignore_index,
        reduction=reduction,
    )
    return result.reshape(target.shape) if reduction == "none" else result


@loss("input, target, weight, ignore_index, reduction", _canonical_nll)
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
    ignored = target == ignore_index
    chosen = where(ignored, 0, target)
    if weight is None:
        weight = ones(input._shape[1], dtype=input.dtype, device=input.device)
    # Comes first: of a class that is out of range it says IndexError, as torch does.
    table = weight.index_select(0, chosen.reshape(-1)).reshape(chosen._shape)
    weights = where(ignored, 0.0, table)
    picked = input.gather(1, chosen.unsqueeze(1)).squeeze(1)
    # Not -picked * weights alone: an infinite loss that is ignored would be NaN.
    losses = where(ignored, 0.0, -picked * weights)
    if reduction == "none":
        return losses
    total = losses.sum()
    return total if reduction == "sum" else total / weights.sum()


def _check_backward(
    g: Any, input: Any, target: Any, weight: Any, ignore_index: int, reduction: str
) -> None:
    check_reduction(reduction)
    wanted = target._shape if reduction == "none" else ()
    if g._shape != wanted:
        raise RuntimeError(f"the gradient must have shape {list(wanted)}, got {list(g._shape)}")


@composite(
    shapes="g(*G), input(N, C, *S), target:int64(N, *S), weight(C)",
    rule=_check_backward,
    method=False,
)
@in_float32
def nll_loss_backward(
    g: Tensor,
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
) -> Tensor:
    """Return the gradient of :func:`nll_loss`'s input, of which only the shape counts."""
    ignored = target == ignore_index
    chosen = where(ignored, 0, target)
    share = _shares(g, ignored, chosen, weight, reduction)
    empty = zeros(input._shape, dtype=share.dtype, device=share.device)
    return empty.scatter_add(1, chosen.unsqueeze(1), -share.unsqueeze(1))


def _shares(g: Any, ignored: Any, chosen: Any, weight: Any, reduction: str) -> Any:
    """Return the gradient of each sample's loss before it is weighted."""
    if weight is None:
        weights = where(ignored, 0.0, 1.0).to(g.dtype)
    else:
        weights = weight.index_select(0, chosen.reshape(-1)).reshape(chosen.shape)
        weights = where(ignored, 0.0, weights)
    if reduction == "mean":
        weights = weights / weights.sum()
    # Where all are ignored nothing is to be learned, whatever the mean of nothing is.
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


def _canonical_cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce, reduction)
    check_tensors("cross_entropy", input=input, target=target)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    shape = input._shape
    if not shape:
        raise RuntimeError("cross_entropy(): expected input of 1 or more dimensions, got 0")
    class_dim = 0 if len(shape) == 1 else 1
    if shape == target._shape:
        if target.dtype.category >= FLOATING:
            if ignore_index >= 0:
                raise RuntimeError("ignore_index is not supported for floating point target")
            return Delegated(
                _of_probabilities(input, target, weight, reduction, label_smoothing, class_dim)
            )
        if class_dim:
            raise RuntimeError(
                f"Expected floating point type for target with class probabilities, got {target.dtype}"
            )
    target = _checked(input, target, weight, reduction, "cross_entropy")
    options = (input, target, weight, ignore_index, reduction)
    if label_smoothing:
        return Delegated(_smoothed(*options, label_smoothing, class_dim))
    return options if class_dim else Delegated(_of_one_sample(cross_entropy, *options))


@composite(
    "input, target, weight, ignore_index, reduction", rule=_canonical_cross_entropy, method=False
)
@in_float32
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
    logs = log_softmax(input, 1)
    return nll_loss(logs, target, weight, ignore_index=ignore_index, reduction=reduction)


@composite(
    shapes="g(*G), input(N, C, *S), target:int64(N, *S), weight(C)",
    rule=_check_backward,
    method=False,
)
@in_float32
def cross_entropy_backward(
    g: Tensor,
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
) -> Tensor:
    """Return the gradient of :func:`cross_entropy`'s input: the softmax less what it should be."""
    ignored = target == ignore_index
    chosen = where(ignored, 0, target)
    share = _shares(g, ignored, chosen, weight, reduction).unsqueeze(1)
    return (softmax(input, 1) * share).scatter_add(1, chosen.unsqueeze(1), -share)


def _smoothed(
    input: Any,
    target: Any,
    weight: Any,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
    class_dim: int,
) -> Any:
    """Return the cross-entropy with part of the target spread evenly over all classes."""
    logs = log_softmax(input, class_dim)
    unsmoothed = nll_loss(logs, target, weight, ignore_index=ignore_index, reduction=reduction)
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
    return unsmoothed * (1 - label_smoothing) + spread * (label_smoothing / classes)


def _weighted(logs: Any, weight: Any, class_dim: int) -> Any:
    if weight is None:
        return logs
    return logs * weight.reshape(-1, *[1] * (logs.ndim - class_dim - 1))


def _of_probabilities(
    input: Any, target: Any, weight: Any, reduction: str, smoothing: float, class_dim: int
) -> Any:
    classes = input.shape[class_dim]
    if weight is not None and tuple(weight.shape) != (classes,):
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {classes} classes or no "
            f"classes but got weight tensor of shape: {list(weight.shape)}"
        )
    if smoothing:
        target = target * (1 - smoothing) + smoothing / max(classes, 1)
    logs = _weighted(log_softmax(input, class_dim), weight, class_dim)
    losses = -(logs * target).sum(class_dim)
    if reduction == "mean":
        return losses.sum() / (input.numel() / classes if classes else math.nan)
    return reduced(losses, reduction, "cross_entropy")


@composite(method=False)
@in_float32
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
    """Return :func:`cross_entropy` of ``linear(input, linear_weight, linear_bias)``.

    Weights (C, d1, ..., dK, features) and a bias (C, d1, ..., dK) give scores (N, C, d1, ..., dK).
    """
    outputs = linear_weight._shape[:-1]
    if len(outputs) > 1:
        rows = linear_weight.reshape(-1, linear_weight._shape[-1])
        bias = None if linear_bias is None else linear_bias.reshape(-1)
        scores = linear(input, rows, bias).reshape((*input._shape[:-1], *outputs))
    else:
        scores = linear(input, linear_weight, linear_bias)
    return cross_entropy(
        scores,
        target,
        weight,
        ignore_index=-100 if ignore_index is None else ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


def _check_floating(name: str, input: Any, target: Any, dtype: Any = None) -> None:
    if not target.dtype.is_floating_point or dtype not in (None, target.dtype):
        raise RuntimeError(
            f"{name}(): Found dtype {scalar_type(target.dtype)} but expected "
            f"{scalar_type(input.dtype)} as the target's; target.to(input.dtype) converts it"
        )


def _weights(dtype: DType, *weights: Any) -> tuple[Any, ...]:
    """Return weights in the dtype of the losses, which they do not change."""
    for weight in weights:
        if weight is not None and weight._key.dtype.is_complex and not dtype.is_complex:
            raise RuntimeError(
                f"result type {scalar_type(weight.dtype)} can't be cast to the desired output type "
                f"{scalar_type(dtype)}: weights of losses are real"
            )
    return tuple([weight if weight is None else cast(weight, dtype) for weight in weights])


def _canonical_binary(input: Any, target: Any, weight: Any, reduction: str) -> tuple[Any, ...]:
    check_tensors("binary_cross_entropy", input=input, target=target)
    _check_floating("binary_cross_entropy", input, target, input.dtype)
    if target._shape != input._shape:
        raise ValueError(
            f"Using a target size ({list(target.shape)}) that is different to the input size "
            f"({list(input.shape)}) is deprecated. Please ensure they have the same size."
        )
    return input, target, *_weights(input.dtype, weight), reduction


@loss("input, target, weight, reduction", _canonical_binary)
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
        If an input or a target is no probability.
    ValueError
        If the shapes differ.
    """
    if not input.is_meta and input.device.type == "cpu":  # elsewhere it would wait for the device
        for name, values in (("input", input), ("target", target)):
            if not _all_between_0_and_1(values):
                raise RuntimeError(f"all elements of {name} should be between 0 and 1")
    losses = _binary_terms(input, target)
    if weight is not None:
        losses = losses * weight.expand(losses.shape)
    return reduced(losses, reduction, "binary_cross_entropy")


def _all_between_0_and_1(input: Any) -> bool:
    return is_within(all_samples(input).detach(), 0.0, 1.0)


def _binary_terms(input: Any, target: Any) -> Any:
    """Return -(t log x + (1 - t) log(1 - x)), with logarithms cut off at -100."""
    logs = input.log().clamp(min=-100)
    return (target - 1) * (-input).log1p().clamp(min=-100) - target * logs


@composite(shapes="g(*G), input(*S), target(*S), weight(*W)", method=False)
@in_float32
def binary_cross_entropy_backward(
    g: Tensor, input: Tensor, target: Tensor, weight: Tensor | None, reduction: str
) -> Tensor:
    """Return the gradient of :func:`binary_cross_entropy`'s input."""
    share = _binary_share(g, input, weight, reduction)
    return share * (input - target) / (input * (1 - input)).clamp(min=1e-12)


def _binary_share(g: Any, input: Any, weight: Any, reduction: str) -> Any:
    """Return the gradient of each element's loss before it is weighted."""
    if reduction == "mean":
        g = g / max(input.numel(), 1)
    return g if weight is None else g * weight


def _cut_off_logs(input: Any) -> tuple[Any, Any]:
    """Return log x and log(1 - x), -100 where they are infinite, and without a slope there."""
    none, all_of_it = input == 0, input == 1
    of_input = input.masked_fill(none, 1).log().clamp(min=-100).masked_fill(none, -100)
    rest = (-input.masked_fill(all_of_it, 0)).log1p().clamp(min=-100)
    return of_input, rest.masked_fill(all_of_it, -100)


def _binary_target(g: Any, input: Any, weight: Any, reduction: str) -> Any:
    of_input, of_rest = _cut_off_logs(input)
    logs = of_rest - of_input
    return _binary_share(g, input, weight, reduction) * logs


def _binary_weight(g: Any, input: Any, target: Any, weight_shape: Any, reduction: str) -> Any:
    of_input, of_rest = _cut_off_logs(input)
    terms = (target - 1) * of_rest - target * of_input
    terms = _binary_share(g, input, None, reduction) * terms
    return terms.sum_to_size(weight_shape)


def _canonical_logits(
    input: Any, target: Any, weight: Any, pos_weight: Any, reduction: str
) -> tuple[Any, ...]:
    check_tensors("binary_cross_entropy_with_logits", input=input, target=target)
    _check_floating("binary_cross_entropy_with_logits", input, target)
    if target._shape != input._shape:
        raise ValueError(
            f"Target size ({list(target.shape)}) must be the same as input size ({list(input.shape)})"
        )
    dtype = result_dtype((input, target))
    return input, target, *_weights(dtype, weight, pos_weight), reduction


@loss("input, target, weight, pos_weight, reduction", _canonical_logits)
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
    logs = logsigmoid(input)
    if pos_weight is not None:
        logs = logs * ((pos_weight - 1) * target + 1)
    losses = (1 - target) * input - logs
    if weight is not None:
        losses = losses * weight
    return reduced(losses, reduction, "binary_cross_entropy_with_logits")


DERIVATIVES = [
    derivative(
        "nll_loss",
        input=lambda g, input, target, weight, ignore_index, reduction: nll_loss_backward(
            g, input, target, weight, ignore_index, reduction
        ),
        weight=lambda g, input, target, weight, ignore_index, reduction: _class_weight_gradient(
            g, input, target, weight, ignore_index, reduction
        ),
    ),
    derivative(
        "cross_entropy",
        input=lambda g, input, target, weight, ignore_index, reduction: cross_entropy_backward(
            g, input, target, weight, ignore_index, reduction
        ),
        weight=lambda g, input, target, weight, ignore_index, reduction: _class_weight_gradient(
            g, log_softmax(input, 1), target, weight, ignore_index, reduction
        ),
    ),
    derivative(
        "binary_cross_entropy",
        input=lambda g, input, target, weight, reduction: binary_cross_entropy_backward(
            g, input, target, weight, reduction
        ),
        target=_binary_target,
        weight=_binary_weight,
    ),
]
