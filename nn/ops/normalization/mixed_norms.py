"""Normalisation of half-precision images by float32 numbers, as autocast has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensorplug.autograd import derivative
from tensorplug.core.dtypes import float32
from tensorplug.core.operators import composite

from .normalization import batch_normalize, batch_normalize_gradient
from .scaling import channel_norm

if TYPE_CHECKING:
    from tensorplug.core import Tensor


@composite(method=False, mixed=True, outputs="output, mean, rstd")
def batch_normalize_mixed(inputs: Sequence[Tensor], eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return half-precision images standardised per channel, times a float32 weight, plus a bias.

    Parameters
    ----------
    inputs : sequence of Tensor
        The images (N, C, *), of half precision; the weight (C,) and the bias (C,), float32.
    eps : float
        Added to the variance.

    Returns
    -------
    output : Tensor
        Of the images' shape and dtype.
    mean, rstd : Tensor
        (C,), float32: the mean and 1 / sqrt(biased variance + eps).
    """
    input, weight, bias = inputs
    output, mean, rstd = batch_normalize([input.to(float32), weight, bias], eps)
    return output.to(input.dtype), mean, rstd


@composite(method=False, mixed=True, outputs="input, weight, bias")
def batch_normalize_mixed_gradient(
    g_output: Tensor,
    g_mean: Tensor,
    g_rstd: Tensor,
    input: Tensor,
    weight: Tensor,
    mean: Tensor,
    rstd: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of :func:`batch_normalize_mixed`'s three inputs."""
    dtype = input.dtype
    g_input, g_weight, g_bias = batch_normalize_gradient(
        g_output.to(float32), g_mean, g_rstd, input.to(float32), weight, mean, rstd
    )
    return g_input.to(dtype), g_weight, g_bias


@composite(method=False, mixed=True)
def channel_norm_mixed(inputs: Sequence[Tensor], eps: float) -> Tensor:
    """Return :func:`~.scaling.channel_norm` of half-precision images by float32 numbers.

    The result is of the images' dtype.
    """
    return channel_norm([inputs[0].to(float32), *inputs[1:]], eps).to(inputs[0].dtype)


def _gradient(
    g_output: Any, g_mean: Any, g_rstd: Any, inputs: Any, mean: Any, rstd: Any
) -> list[Any]:
    input, weight, _ = inputs
    return list(batch_normalize_mixed_gradient(g_output, g_mean, g_rstd, input, weight, mean, rstd))


DERIVATIVES = [derivative("batch_normalize_mixed", inputs=_gradient)]
