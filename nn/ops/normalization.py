"""Standardisation, which all normalisation layers share."""

from __future__ import annotations

import math
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


def _gradient(g_output: Any, g_mean: Any, g_rstd: Any, output: Any, rstd: Any, dim: Shape) -> Any:
    return standardize_gradient(g_output, g_mean, g_rstd, output, rstd, dim)


DERIVATIVES = [derivative("standardize", input=_gradient)]
