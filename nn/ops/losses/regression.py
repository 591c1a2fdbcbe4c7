"""Losses against numbers and distributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tensorplug.autograd import derivative, no_grad
from tensorplug.core import Tensor
from tensorplug.core.device.dtypes import FLOATING, bool_, finfo, get_default_dtype, scalar_type
from tensorplug.core.dispatch.op_registry import Delegated, composite
from tensorplug.core.errors import warn
from tensorplug.core.ops import broadcast_tensors, full_like, where, xlogy
from tensorplug.core.ops.rules import in_float32
from tensorplug.core.tensor.shapes import broadcast_shapes

from .declaration import check_gradient, check_reduction, check_tensors, loss, reduced


def _broadcast(input: Any, target: Any, *options: Any, name: str) -> Any:
    """Return the arguments with both at one shape, with torch's warning if theirs differ.

    Whole numbers are converted to the dtype of the other one, in which the loss and its gradient are.
    """
    check_tensors(name, input=input, target=target)
    converted = False
    if target._key is not input._key:
        whole = [not tensor._key.is_differentiable for tensor in (input, target)]
        if whole == [False, True]:
            target, converted = target.to(input.dtype), True
        elif whole == [True, False]:
            input, converted = input.to(target.dtype), True
    if target._shape == input._shape:
        return (input, target, *options) if converted else None
    warn(
        f"Using a target size ({list(target.shape)}) that is different to the input size "
        f"({list(input.shape)}). This will likely lead to incorrect results due to broadcasting. Please "
        "ensure they have the same size.",
        UserWarning,
    )
    return *broadcast_tensors(input, target), *options


def _checked(name: str) -> Callable[..., Any]:
    """Return the check of a loss of an input and a target, by the loss's name."""

    def check(input: Any, target: Any, reduction: str, weight: Any) -> Any:
        check_reduction(reduction)
        found = _broadcast(input, target, reduction, weight, name=name)
        if weight is not None and weight._shape != (found or (input,))[0]._shape:
            raise ValueError(f"{name}(): Inputs and weight must have the same size.")
        return found

    return check


def _check_smooth_l1(input: Any, target: Any, reduction: str, beta: float) -> Any:
    if not beta >= 0:  # nan neither
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    check_reduction(reduction)
    if beta == 0:  # as of complex numbers, too
        return Delegated(l1_loss(input, target, reduction=reduction))
    return _broadcast(input, target, reduction, beta, name="smooth_l1_loss")


def _check_huber(input: Any, target: Any, reduction: str, delta: float, weight: Any) -> Any:
    if not delta > 0:  # nan neither
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    check_reduction(reduction)
    shape = broadcast_shapes(input._shape, target._shape)
    if weight is not None and weight._shape != shape:
        raise ValueError("huber_loss(): Inputs and weight must have the same size.")
    return _broadcast(input, target, reduction, delta, weight, name="huber_loss")


def _check_kl_div(input: Any, target: Any, reduction: str, log_target: bool) -> None:
    check_tensors("kl_div", input=input, target=target)
    if input.dtype.category < FLOATING or target.dtype.category < FLOATING:
        raise RuntimeError(
            f"kl_div(): Integral inputs not supported, got {input.dtype} and {target.dtype}"
        )


def _check_poisson(input: Any, target: Any, log_input: bool, *options: Any) -> Any:
    check_tensors("poisson_nll_loss", input=input)
    if input._key.is_differentiable or (input.dtype is bool_ and not log_input):
        return None
    # The exponential or logarithm of whole numbers is of the default dtype, whatever the target's.
    return input.to(get_default_dtype()), target, log_input, *options


def _check_gaussian(
    input: Any, target: Any, var: Any, full: bool, eps: float, reduction: str
) -> None:
    check_tensors("gaussian_nll_loss", input=input, target=target)
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError("var has negative entry/entries")
    else:
        shape, given = input._shape, var._shape
        if given not in (shape, shape[:-1]) and not _is_one_but_for_a_dim(given, shape):
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")


def _is_one_but_for_a_dim(given: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Return whether sizes are alike but for one dimension, where `given` has 1."""
    different = [(a, b) for a, b in zip(given, shape, strict=False) if a != b]
    return len(given) == len(shape) and len(different) == 1 and different[0][0] == 1


def _weighted_mean(losses: Any, weight: Any, reduction: str, name: str) -> Any:
    """Reduce losses with a weight per element; the mean is divided by the sum of the weights."""
    if weight is None:
        return reduced(losses, reduction, name)
    weighted = losses * weight
    if reduction == "mean":
        return weighted.sum() / weight.sum()
    return reduced(weighted, reduction, name)


_check_whole_mse = _checked("mse_loss")


def _check_mse(input: Any, target: Any, reduction: str, weight: Any) -> Any:
    found = _check_whole_mse(input, target, reduction, weight)
    if input.dtype.is_complex or target.dtype.is_complex:
        raise NotImplementedError(
            "mse_loss(): not implemented for complex numbers, whose squares may be negative; take "
            "mse_loss of the real and of the imaginary parts"
        )
    if input.dtype.category < FLOATING and target.dtype.category < FLOATING:
        raise NotImplementedError(
            f'mse_loss(): "mse" not implemented for {scalar_type(input.dtype)!r}: integers wrap around '
            "when they are squared; convert the input with .float()"
        )
    return found


@loss("input, target, reduction, weight", _check_mse)
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
    return _weighted_mean((input - target).square(), weight, reduction, "mse_loss")


@loss("input, target, reduction, weight", _checked("l1_loss"))
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Return the absolute differences, reduced."""
    return _weighted_mean((input - target).abs(), weight, reduction, "l1_loss")


def _check_gradient(
    grad_output: Any, input: Any, target: Any, reduction: str, bound: float = 0.0
) -> None:
    check_reduction(reduction)
    check_gradient(grad_output, input._shape, reduction)


def _capped(difference: Any, bound: float) -> Any:
    """Return the differences, of which none is farther from zero than `bound`."""
    bound = min(bound, finfo(difference.dtype).max)
    return difference.clamp(-bound, bound)


def _huber(difference: Any, delta: float) -> Any:
    capped = _capped(difference, delta)
    return capped * difference.sub(capped, alpha=0.5)


def _each(g: Any, difference: Any, reduction: str) -> Any:
    """Return the gradient of each element's loss."""
    return g / difference.numel() if reduction == "mean" else g


@loss("input, target, reduction, beta", _check_smooth_l1)
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
    difference = input - target
    capped = _capped(difference, beta)
    return reduced(capped / beta * difference.sub(capped, alpha=0.5), reduction, "smooth_l1_loss")


@loss("input, target, reduction, delta, weight", _check_huber)
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
    losses = _huber(input - target, delta)
    if weight is not None:
        losses = losses * weight  # torch takes the plain mean here
    return reduced(losses, reduction, "huber_loss")


@composite(shapes="grad_output(*R), input(*S), target(*S)", rule=_check_gradient, method=False)
@in_float32
def mse_loss_backward(grad_output: Tensor, input: Tensor, target: Tensor, reduction: str) -> Tensor:
    """Return the gradient of :func:`mse_loss`'s input, without weights; its target's is the opposite."""
    difference = input - target
    return difference * (_each(grad_output, difference, reduction) * 2)


@composite(shapes="grad_output(*R), input(*S), target(*S)", rule=_check_gradient, method=False)
@in_float32
def smooth_l1_loss_backward(
    grad_output: Tensor, input: Tensor, target: Tensor, reduction: str, beta: float
) -> Tensor:
    """Return the gradient of :func:`smooth_l1_loss`'s input; that of its target is the opposite."""
    difference = input - target
    slope = _capped(difference, beta) / beta if beta else difference.sign()
    return slope * _each(grad_output, difference, reduction)


@composite(shapes="grad_output(*R), input(*S), target(*S)", rule=_check_gradient, method=False)
@in_float32
def huber_loss_backward(
    grad_output: Tensor, input: Tensor, target: Tensor, reduction: str, delta: float
) -> Tensor:
    """Return the gradient of :func:`huber_loss`'s input, without weights; its target's is the opposite."""
    difference = input - target
    return _capped(difference, delta) * _each(grad_output, difference, reduction)


@loss("input, target, reduction, log_target", _check_kl_div)
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
    if reduction == "mean":
        warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition.",
            UserWarning,
        )
    if log_target:
        losses = target.exp() * (target - input)
    else:
        losses = xlogy(target, target) - target * input
    if reduction == "batchmean":
        return losses.sum() / input.shape[0] if input.ndim else losses.sum()
    return reduced(losses, reduction, "kl_div")


@loss("input, target, log_input, full, eps, reduction", _check_poisson)
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
    if log_input:
        losses = input.exp() - target * input
    else:
        losses = input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        losses = losses + where(target <= 1, 0.0, stirling)
    return reduced(losses, reduction, "poisson_nll_loss")


@loss("input, target, var, full, eps, reduction", _check_gaussian)
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
    if isinstance(var, (int, float)):
        var = full_like(input, var, requires_grad=False)
    elif not var.is_meta and bool((var < 0).any()):
        raise ValueError("var has negative entry/entries")
    if var._shape != input._shape and var._shape == input._shape[:-1]:
        var = var.unsqueeze(-1)
    var = var.clone()
    with no_grad():
        var.clamp_(min=eps)
    losses = 0.5 * (var.log() + (input - target).square() / var)
    if full:
        losses = losses + 0.5 * math.log(2 * math.pi)
    return reduced(losses, reduction, "gaussian_nll_loss")


def _huber_gradient(
    g: Any, input: Any, target: Any, reduction: str, delta: float, weight: Any
) -> Any:
    slope = huber_loss_backward(g, input, target, reduction, delta)
    return slope if weight is None else slope * weight


def _squares_gradient(g: Any, input: Any, target: Any, reduction: str, weight: Any) -> Any:
    """Return the gradient of :func:`mse_loss`'s input; its target's is the opposite."""
    if weight is None:
        return mse_loss_backward(g, input, target, reduction)
    share = g / weight.sum() if reduction == "mean" else g
    return (input - target) * weight * (share * 2)


def _squares_weight(g: Any, input: Any, target: Any, reduction: str, weight: Any) -> Any:
    squares = (input - target).square()
    if reduction != "mean":
        return squares * g
    total = weight.sum()
    return (squares - (squares * weight).sum() / total) * (g / total)


DERIVATIVES = [
    derivative(
        "mse_loss",
        input=_squares_gradient,
        target=lambda g, input, target, reduction, weight: (
            -_squares_gradient(g, input, target, reduction, weight)
        ),
        weight=_squares_weight,
    ),
    derivative(
        "smooth_l1_loss",
        input=lambda g, input, target, reduction, beta: smooth_l1_loss_backward(
            g, input, target, reduction, beta
        ),
        target=lambda g, input, target, reduction, beta: (
            -smooth_l1_loss_backward(g, input, target, reduction, beta)
        ),
    ),
    derivative(
        "huber_loss",
        input=_huber_gradient,
        target=lambda g, input, target, reduction, delta, weight: (
            -_huber_gradient(g, input, target, reduction, delta, weight)
        ),
        weight=lambda g, input, target, reduction, delta: (
            _huber(input - target, delta) * _each(g, input, reduction)
        ),
    ),
]
