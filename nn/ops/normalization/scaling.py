"""Normalisation in one op: of rows, of channels by given statistics, and of vectors to unit length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensorplug.autograd import derivative
from tensorplug.core.dtypes import bfloat16, float16, float32
from tensorplug.core.operators import composite
from tensorplug.core.ops.linalg.norms import linalg_vector_norm

from .normalization import _all_but_channels, _along_channels, standardize

if TYPE_CHECKING:
    from tensorplug.core import Tensor

_HALVES = (float16, bfloat16)


def _wide(*tensors: Any) -> list[Any]:
    """Return half-precision tensors in float32, in which torch computes them too."""
    return [t.to(float32) if t.dtype in _HALVES else t for t in tensors]


# --- rows ------------------------------------------------------------------------------------------


@composite(method=False)
def row_norm(input: Tensor, length: int, eps: float, centred: bool) -> Tensor:
    """Return each run of elements, as the input lists them, divided by its root mean square.

    Parameters
    ----------
    input : Tensor
        Floating point.
    length : int
        The elements of a run; a divisor of the input's number of elements.
    eps : float
        Added to the mean square.
    centred : bool
        Whether the mean of the run is taken off first.

    Returns
    -------
    Tensor
        Of the input's shape.
    """
    (x,) = _wide(input)
    if not input.numel():
        return input.clone()
    rows = x.reshape(-1, length)
    if centred:
        rows = standardize(rows, (1,), eps)[0]
    else:
        rows = rows * ((rows * rows).mean(1, True) + eps).rsqrt()
    return rows.reshape(input._shape).to(input.dtype)


@composite(method=False)
def row_norm_gradient(g: Tensor, input: Tensor, length: int, eps: float, centred: bool) -> Tensor:
    """Return the gradient of :func:`row_norm`'s input.

    Notes
    -----
    With the output x̂: dx = rstd (g - mean(g) - x̂ mean(g x̂)), without mean(g) where no mean is taken off.
    The statistics are computed again from the input, so that nothing else is saved.
    """
    if not input.numel():
        return g.clone()
    p, x = [t.reshape(-1, length) for t in _wide(g, input)]
    if centred:
        x = x - x.mean(1, True)
    rstd = ((x * x).mean(1, True) + eps).rsqrt()
    output = x * rstd
    result = p - output * (p * output).mean(1, True)
    if centred:
        result = result - p.mean(1, True)
    return (result * rstd).reshape(input._shape).to(input.dtype)


@composite(method=False)
def affine_row_norm(
    inputs: Sequence[Tensor], length: int, repeat: int, eps: float, centred: bool
) -> Tensor:
    """Return :func:`row_norm` times weights, plus biases.

    Parameters
    ----------
    inputs : sequence of Tensor
        The input, the weights, and perhaps biases, of one dtype. Weights are taken in turn along the
        elements of the input, as they are listed.
    length : int
        The elements of a run.
    repeat : int
        For how many elements in succession a weight counts; a divisor of `length`.
    eps : float
        Added to the mean square.
    centred : bool
        Whether the mean of the run is taken off first.
    """
    input, weight, *bias = inputs
    x, w, *b = _wide(*inputs)
    if not input.numel():
        return input.clone()
    output = row_norm(x, length, eps, centred).reshape(-1, weight.numel(), repeat)
    output = output * w.reshape(-1, 1)
    if bias:
        output = output + b[0].reshape(-1, 1)
    return output.reshape(input._shape).to(input.dtype)


@composite(method=False, outputs="input, weight, bias")
def affine_row_norm_gradient(
    g: Tensor,
    input: Tensor,
    weight: Tensor,
    length: int,
    repeat: int,
    eps: float,
    centred: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of :func:`affine_row_norm`'s inputs, also of a bias where there is none."""
    p, x, w = _wide(g, input, weight)
    if not input.numel():
        return g.clone(), weight * 0, weight * 0
    p = p.reshape(-1, weight.numel(), repeat)
    inner = (p * w.reshape(-1, 1)).reshape(input._shape)
    output = row_norm(x, length, eps, centred).reshape(p._shape)
    g_weight, g_bias = [t.sum((0, 2)).reshape(weight._shape) for t in (p * output, p)]
    g_input = row_norm_gradient(inner, x, length, eps, centred)
    dtype = input.dtype
    return g_input.to(dtype), g_weight.to(dtype), g_bias.to(dtype)


# --- channels --------------------------------------------------------------------------------------


@composite(method=False)
def channel_norm(inputs: Sequence[Tensor], eps: float) -> Tensor:
    """Return images less a mean, divided by the root of a variance, perhaps times a weight plus a bias.

    Parameters
    ----------
    inputs : sequence of Tensor
        The images (N, C, *), the mean (C,) and the variance (C,), and perhaps the weight (C,) and the bias
        (C,), of one dtype.
    eps : float
        Added to the variance.
    """
    input = inputs[0]
    x, mean, variance, *affine = _wide(*inputs)
    scale = (variance + eps).rsqrt()
    if affine:
        scale = scale * affine[0]
    shape = _along_channels(x)
    output = (x - mean.reshape(shape)) * scale.reshape(shape)
    if affine:
        output = output + affine[1].reshape(shape)
    return output.to(input.dtype)


@composite(method=False, outputs="input, weight, bias")
def channel_norm_gradient(
    g: Tensor, input: Tensor, mean: Tensor, variance: Tensor, weight: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of :func:`channel_norm`'s images, weight and bias."""
    dtype = input.dtype
    p, x, middle, square, w = _wide(g, input, mean, variance, weight)
    dims, shape = _all_but_channels(input), _along_channels(input)
    rstd = (square + eps).rsqrt()
    g_input = p * (rstd * w).reshape(shape)
    g_weight = (p * (x - middle.reshape(shape))).sum(dims) * rstd
    return g_input.to(dtype), g_weight.to(dtype), p.sum(dims).to(dtype)


@composite(method=False, writes="running_mean, running_var")
def update_statistics(
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
        (C,): of the batch, as :func:`batch_normalize` returns them.
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


# --- unit vectors ----------------------------------------------------------------------------------


@composite(method=False)
def unit_vectors(input: Tensor, dim: int, eps: float) -> Tensor:
    """Return the vectors along `dim` divided by their Euclidean length, which counts as at least `eps`.

    Parameters
    ----------
    input : Tensor
        Floating point.
    dim : int
        Not negative.
    eps : float
        Above zero.
    """
    (x,) = _wide(input)
    return (x / linalg_vector_norm(x, 2, (dim,), True).clamp_min(eps)).to(input.dtype)


@composite(method=False)
def unit_vectors_gradient(g: Tensor, input: Tensor, dim: int, eps: float) -> Tensor:
    """Return the gradient of :func:`unit_vectors`' input.

    Notes
    -----
    With the length l and the result y: (g - y <g, y>) / l, or g / eps where the length is below `eps`.
    """
    p, x = _wide(g, input)
    length = linalg_vector_norm(x, 2, (dim,), True)
    below = length < eps
    length = length.clamp_min(eps)
    output = x / length
    along = (p * output).sum(dim, True).masked_fill(below, 0)
    return ((p - output * along) / length).to(input.dtype)


def _row_gradient(g: Any, input: Any, length: int, eps: float, centred: bool) -> Any:
    return row_norm_gradient(g, input, length, eps, centred)


def _affine_gradient(
    g: Any, inputs: Any, length: int, repeat: int, eps: float, centred: bool
) -> list[Any]:
    input, weight = inputs[:2]
    found = affine_row_norm_gradient(g, input, weight, length, repeat, eps, centred)
    return list(found[: len(inputs)])


def _channel_gradient(g: Any, inputs: Any, eps: float) -> list[Any]:
    input, mean, variance, *affine = inputs
    weight = affine[0] if affine else variance * 0 + 1
    found = channel_norm_gradient(g, input, mean, variance, weight, eps)
    # The mean shifts as the bias does, and the variance scales as the weight does.
    scale = (variance + eps).rsqrt() * weight
    g_variance = found[1] * scale * (variance + eps).rsqrt() * -0.5
    return [found[0], -found[2] * scale, g_variance, *found[1 : len(affine) + 1]]


def _unit_gradient(g: Any, input: Any, dim: int, eps: float) -> Any:
    return unit_vectors_gradient(g, input, dim, eps)


DERIVATIVES = [
    derivative("row_norm", input=_row_gradient),
    derivative("affine_row_norm", inputs=_affine_gradient),
    derivative("channel_norm", inputs=_channel_gradient),
    derivative("unit_vectors", input=_unit_gradient),
]
