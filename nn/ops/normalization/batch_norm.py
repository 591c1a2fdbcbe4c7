"""Batch normalisation, in training and in evaluation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tensorplug.autograd import derivative, no_grad
from tensorplug.core.dispatch.op import Delegated
from tensorplug.core.dispatch.op_registry import composite
from tensorplug.core.ops.rules import check_tensor

from .._formats import formatted
from ._shared import (
    all_but_channels,
    along_channels,
    check_parameters,
    check_per_channel,
    fit,
    nothing,
    wide,
    without_history,
)

if TYPE_CHECKING:
    from tensorplug.core import Tensor


def _canonical_batch_norm(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float | None = 0.1,
    eps: float = 1e-5,
) -> Any:
    check_tensor(input, "batch_norm")
    sizes = input._shape
    if len(sizes) < 2:
        if 0 in sizes:  # torch takes it, whatever stands beside it
            return Delegated(input.clone())
        raise ValueError(f"batch_norm(): expected at least 2D input, got {len(sizes)}D")
    channels = sizes[1]
    check_per_channel(channels, running_mean, running_var, weight, bias)
    check_parameters("batch_norm", input, running_mean, running_var, weight, bias)
    if not training:
        if running_mean is None or running_var is None:
            raise ValueError(
                "Expected running_mean and running_var to be defined when training=False"
            )
    elif eps <= 0:
        raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    elif not math.prod(sizes):
        return Delegated(of_nothing(input, weight, bias))
    elif math.prod(sizes) == channels:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {list(input.shape)}"
        )
    return input, running_mean, running_var, weight, bias, bool(training), momentum, eps


def of_nothing(input: Any, weight: Any, bias: Any) -> Any:
    """Return what has no elements, standardised: only what is differentiated has to be told."""
    shape = along_channels(input)
    output = input.clone()
    if weight is not None:
        output = output * weight.reshape(shape)
    if bias is not None:
        output = output + bias.reshape(shape)
    return output.to(input.dtype)


@composite(
    rule=_canonical_batch_norm, updates="running_mean, running_var", mixed=True, method=False
)
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float | None = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Return `input` standardised per channel over the batch and all positions.

    Parameters
    ----------
    input : Tensor
        (N, C, *).
    running_mean, running_var : Tensor, optional
        (C,): used in evaluation, updated in training with the unbiased variance.
    weight, bias : Tensor, optional
        (C,).
    training : bool
        Whether the batch's own statistics are used.
    momentum : float
        The weight of the new statistics in the running ones.
    eps : float
        Added to the variance.

    Raises
    ------
    ValueError
        If a channel has only one value in training.
    """
    if not training:
        assert running_mean is not None
        assert running_var is not None
        affine = [t for t in (weight, bias) if t is not None]
        if len(affine) != 1 and fit(input, running_mean, running_var, *affine):
            return batch_norm_inference(input, running_mean, running_var, weight, bias, eps)
        shape = along_channels(input)
        scale = (running_var + eps).rsqrt()
        if weight is not None:
            scale = scale * weight
        shift = -running_mean * scale
        if bias is not None:
            shift = shift + bias
        return (input * scale.reshape(shape) + shift.reshape(shape)).to(input.dtype)
    return _of_batch(input, running_mean, running_var, weight, bias, momentum, eps)[0]


def batch_norm_with_statistics(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any,
    bias: Any,
    momentum: float | None,
    eps: float,
) -> tuple[Any, Any, Any]:
    """Return what :func:`batch_norm` does of images in training, and the statistics of the batch."""
    _canonical_batch_norm(input, running_mean, running_var, weight, bias, True, momentum, eps)
    return _of_batch(input, running_mean, running_var, weight, bias, momentum, eps)


def _of_batch(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any,
    bias: Any,
    momentum: float | None,
    eps: float,
) -> tuple[Any, Any, Any]:
    if weight is not None and bias is not None and fit(input, weight, bias):
        output, mean, rstd = native_batch_norm(input, weight, bias, eps)
    else:
        output, mean, rstd = native_batch_norm(input, None, None, eps)
        shape = along_channels(input)
        if weight is not None:
            output = output * weight.reshape(shape)
        if bias is not None:
            output = output + bias.reshape(shape)
        output = output.to(input.dtype)
    if running_mean is not None and running_var is not None and momentum is not None:
        count = input.numel() // max(input._shape[1], 1)
        batch = without_history(mean), without_history(rstd), momentum, eps, count / (count - 1)
        if running_mean._state or running_var._state:
            with no_grad():
                batch_norm_update_stats(running_mean, running_var, *batch)
        else:
            batch_norm_update_stats(running_mean, running_var, *batch)
    return output, mean, rstd


@composite(
    shapes="input(N, C, *S), weight(C), bias(C)",
    method=False,
    mixed=True,
    outputs="output, mean, rstd",
)
def native_batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return images standardised per channel, times a weight, plus a bias.

    Parameters
    ----------
    input : Tensor
        (N, C, *).
    weight, bias : Tensor, optional
        (C,), both or neither: of the input's dtype, or float32 for half precision.
    eps : float
        Added to the variance.

    Returns
    -------
    output : Tensor
        Of the input's shape and dtype.
    mean, rstd : Tensor
        (C,), of the weight's dtype: the mean and 1 / sqrt(biased variance + eps).
    """
    x = formatted(wide(input), input)
    dims, shape = all_but_channels(input), along_channels(input)
    mean = x.mean(dims, True)
    centred = x - mean
    rstd = ((centred * centred).mean(dims, True) + eps).rsqrt()
    output = centred * rstd
    dtype = input.dtype
    if weight is not None and bias is not None:
        output = output * wide(weight).reshape(shape) + wide(bias).reshape(shape)
        dtype = weight.dtype
    return output.to(input.dtype), mean.reshape(-1).to(dtype), rstd.reshape(-1).to(dtype)


@composite(
    shapes="g_output(N, C, *S), g_mean(C), g_rstd(C), input(N, C, *S), weight(C), mean(C), rstd(C)",
    method=False,
    mixed=True,
    outputs="input, weight, bias",
)
def native_batch_norm_backward(
    g_output: Tensor,
    g_mean: Tensor,
    g_rstd: Tensor,
    input: Tensor,
    weight: Tensor | None,
    mean: Tensor,
    rstd: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of :func:`native_batch_norm`, from those of its three outputs.

    Without a weight the last two are empty.

    Notes
    -----
    With the standardised x̂ and n elements per mean:
    dx = rstd (g - mean(g) - x̂ mean(g x̂)) + g_mean / n - g_rstd rstd² x̂ / n.
    What was standardised is computed again from the input, so that nothing else of its size is saved.
    """
    dims, shape = all_but_channels(input), along_channels(input)
    g, x = [formatted(wide(t), input) for t in (g_output, input)]
    to_mean, to_rstd, middle, scale = [wide(t).reshape(shape) for t in (g_mean, g_rstd, mean, rstd)]
    output = (x - middle) * scale
    inner = g if weight is None else g * wide(weight).reshape(shape)
    n = math.prod([input._shape[d] for d in dims])
    along = (inner * output).mean(dims, True) * scale + to_rstd * (scale * scale) / n
    constant = inner.mean(dims, True) * scale - to_mean / n
    g_input = (inner * scale - output * along - constant).to(input.dtype)
    if weight is None:
        return g_input, nothing(input), nothing(input)
    dtype = weight.dtype
    return g_input, (g * output).sum(dims).to(dtype), g.sum(dims).to(dtype)


@composite(
    shapes="input(N, C, *S), running_mean(C), running_var(C), weight(C), bias(C)",
    method=False,
    mixed=True,
)
def batch_norm_inference(
    input: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> Tensor:
    """Return images less a mean, divided by the root of a variance, perhaps times a weight plus a bias.

    Parameters
    ----------
    input : Tensor
        (N, C, *).
    running_mean, running_var, weight, bias : Tensor
        (C,), the last two both or neither: of the input's dtype, or float32 for half precision.
    eps : float
        Added to the variance.
    """
    shape = along_channels(input)
    scale = (wide(running_var) + eps).rsqrt()
    if weight is not None:
        scale = scale * wide(weight)
    output = (formatted(wide(input), input) - wide(running_mean).reshape(shape)) * scale.reshape(
        shape
    )
    if bias is not None:
        output = output + wide(bias).reshape(shape)
    return output.to(input.dtype)


@composite(
    shapes="g(N, C, *S), input(N, C, *S), mean(C), variance(C), weight(C)",
    method=False,
    mixed=True,
    outputs="input, weight, bias",
)
def batch_norm_inference_backward(
    g: Tensor, input: Tensor, mean: Tensor, variance: Tensor, weight: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of :func:`batch_norm_inference`'s images, weight and bias."""
    dims, shape = all_but_channels(input), along_channels(input)
    p, x = [formatted(wide(t), input) for t in (g, input)]
    rstd = (wide(variance) + eps).rsqrt()
    g_input = p * (rstd * wide(weight)).reshape(shape)
    g_weight = (p * (x - wide(mean).reshape(shape))).sum(dims) * rstd
    dtype = weight.dtype
    return g_input.to(input.dtype), g_weight.to(dtype), p.sum(dims).to(dtype)


@composite(
    shapes="running_mean(C), running_var(C), mean(C), rstd(C)",
    method=False,
    writes="running_mean, running_var",
)
def batch_norm_update_stats(
    running_mean: Tensor,
    running_var: Tensor,
    mean: Tensor,
    rstd: Tensor,
    momentum: float,
    eps: float,
    unbiased: float,
) -> None:
    """Move running statistics of channels towards those of a batch.

    Parameters
    ----------
    running_mean, running_var : Tensor
        (C,): changed in place.
    mean, rstd : Tensor
        (C,): of the batch, as :func:`native_batch_norm` returns them.
    momentum : float
        The weight of the batch.
    eps : float
        What was added to the variance of which `rstd` is one over the root.
    unbiased : float
        What the batch's variance is multiplied with.
    """
    variance = (rstd**-2 - eps) * unbiased
    running_mean.mul_(1 - momentum).add_(mean.to(running_mean.dtype) * momentum)
    running_var.mul_(1 - momentum).add_(variance.to(running_var.dtype) * momentum)


def _gradients(
    g_output: Any, g_mean: Any, g_rstd: Any, input: Any, weight: Any, mean: Any, rstd: Any
) -> list[Any]:
    found = native_batch_norm_backward(g_output, g_mean, g_rstd, input, weight, mean, rstd)
    return [found[0], None, None] if weight is None else list(found)


def _inference_gradients(
    g: Any, input: Any, running_mean: Any, running_var: Any, weight: Any, eps: float
) -> list[Any]:
    scale = running_var * 0 + 1 if weight is None else weight
    found = batch_norm_inference_backward(g, input, running_mean, running_var, scale, eps)
    # The mean shifts as the bias does, and the variance scales as the weight does.
    rstd = (running_var + eps).rsqrt()
    both = [-found[2] * rstd * scale, found[1] * scale * rstd * rstd * -0.5]
    return [found[0], *both, *([None, None] if weight is None else found[1:])]


DERIVATIVES = [
    derivative("native_batch_norm", joint={"input, weight, bias": _gradients}),
    derivative(
        "batch_norm_inference",
        joint={"input, running_mean, running_var, weight, bias": _inference_gradients},
    ),
]
