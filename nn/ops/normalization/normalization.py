"""Standardisation, which all normalisation layers share, and batch normalisation as one op."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensorplug.autograd import derivative
from tensorplug.core.dtypes import bfloat16, float16, float32
from tensorplug.core.operators import composite
from tensorplug.core.shapes import Shape

if TYPE_CHECKING:
    from tensorplug.core import Tensor


@composite(method=False, outputs="output, mean, rstd")
def standardize(input: Tensor, dim: Shape, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return `input` with mean 0 and variance 1 over the dimensions `dim`.

    Parameters
    ----------
    input : Tensor
        Floating point.
    dim : tuple of int
        Not negative.
    eps : float
        Added to the variance.

    Returns
    -------
    output : Tensor
        Of the input's shape.
    mean, rstd : Tensor
        The mean and 1 / sqrt(biased variance + eps), with the reduced dimensions kept at size 1.

    Notes
    -----
    Half precision is computed in float32, as in torch.
    """
    dtype = input.dtype
    if dtype is float16 or dtype is bfloat16:
        output, mean, rstd = standardize(input.to(float32), dim, eps)
        return output.to(dtype), mean.to(dtype), rstd.to(dtype)
    mean = input.mean(dim, True)
    centred = input - mean
    rstd = ((centred * centred).mean(dim, True) + eps).rsqrt()
    return centred * rstd, mean, rstd


@composite(method=False)
def standardize_gradient(
    g_output: Tensor, g_mean: Tensor, g_rstd: Tensor, output: Tensor, rstd: Tensor, dim: Shape
) -> Tensor:
    """Return the gradient of :func:`standardize`, from those of its three outputs.

    Notes
    -----
    With the output x̂ and n elements per mean:
    dx = rstd (g - mean(g) - x̂ mean(g x̂)) + g_mean / n - g_rstd rstd² x̂ / n.
    Half precision is computed in float32, as in torch.
    """
    dtype = output.dtype
    if dtype is float16 or dtype is bfloat16:
        return standardize_gradient(
            g_output.to(float32),
            g_mean.to(float32),
            g_rstd.to(float32),
            output.to(float32),
            rstd.to(float32),
            dim,
        ).to(dtype)
    n = math.prod([output._shape[d] for d in dim])
    along = (g_output * output).mean(dim, True) * rstd + g_rstd * (rstd * rstd) / n
    constant = g_output.mean(dim, True) * rstd - g_mean / n
    return g_output * rstd - output * along - constant


@composite(method=False, outputs="output, mean, rstd")
def batch_normalize(inputs: Sequence[Tensor], eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return images standardised per channel, times a weight, plus a bias.

    Parameters
    ----------
    inputs : sequence of Tensor
        The images (N, C, *), the weight (C,) and the bias (C,), of one dtype.
    eps : float
        Added to the variance.

    Returns
    -------
    output : Tensor
        Of the images' shape.
    mean, rstd : Tensor
        (C,): the mean and 1 / sqrt(biased variance + eps).
    """
    input, weight, bias = inputs
    output, mean, rstd = standardize(input, _all_but_channels(input), eps)
    shape = _along_channels(input)
    scaled = output * weight.reshape(shape) + bias.reshape(shape)
    return scaled, mean.reshape(-1), rstd.reshape(-1)


@composite(method=False, outputs="input, weight, bias")
def batch_normalize_gradient(
    g_output: Tensor,
    g_mean: Tensor,
    g_rstd: Tensor,
    input: Tensor,
    weight: Tensor,
    mean: Tensor,
    rstd: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of :func:`batch_normalize`'s three inputs, from those of its three outputs.

    Notes
    -----
    What was standardised is computed again from the input, so that nothing else of its size is saved. Half
    precision is computed in float32, as in torch.
    """
    dtype = input.dtype
    if dtype is float16 or dtype is bfloat16:
        wide = [t.to(float32) for t in (g_output, g_mean, g_rstd, input, weight, mean, rstd)]
        g_input, g_weight, g_bias = batch_normalize_gradient(*wide)
        return g_input.to(dtype), g_weight.to(dtype), g_bias.to(dtype)
    dims, shape = _all_but_channels(input), _along_channels(input)
    scale = rstd.reshape(shape)
    output = (input - mean.reshape(shape)) * scale
    g_input = standardize_gradient(
        g_output * weight.reshape(shape),
        g_mean.reshape(shape),
        g_rstd.reshape(shape),
        output,
        scale,
        dims,
    )
    return g_input, (g_output * output).sum(dims), g_output.sum(dims)


def _all_but_channels(input: Any) -> Shape:
    return (0, *range(2, len(input._shape)))


def _along_channels(input: Any) -> Shape:
    return (1, -1, *[1] * (len(input._shape) - 2))


def _gradient(g_output: Any, g_mean: Any, g_rstd: Any, output: Any, rstd: Any, dim: Shape) -> Any:
    return standardize_gradient(g_output, g_mean, g_rstd, output, rstd, dim)


def _batch_gradient(
    g_output: Any, g_mean: Any, g_rstd: Any, inputs: Any, mean: Any, rstd: Any
) -> list[Any]:
    input, weight, _ = inputs
    return list(batch_normalize_gradient(g_output, g_mean, g_rstd, input, weight, mean, rstd))


DERIVATIVES = [
    derivative("standardize", input=_gradient),
    derivative("batch_normalize", inputs=_batch_gradient),
]
