"""Normalisation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorplug.autograd import no_grad
from tensorplug.core import Tensor
from tensorplug.core.dtypes import bfloat16, finfo, float16, float32
from tensorplug.core.layers import seen_by_layers

from ..ops.normalization.mixed_norms import batch_normalize_mixed, channel_norm_mixed
from ..ops.normalization.normalization import batch_normalize, standardize
from ..ops.normalization.scaling import (
    affine_row_norm,
    channel_norm,
    row_norm,
    unit_vectors,
    update_statistics,
)
from ._common import tensor

__all__ = [
    "batch_norm",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "local_response_norm",
    "normalize",
    "rms_norm",
]


def _affine(x: Tensor, weight: Tensor | None, bias: Tensor | None, shape: Any) -> Tensor:
    """Return `x` times a weight plus a bias, in the dtype of `x`."""
    dtype = x.dtype
    if weight is not None:
        x = x * weight.reshape(shape)
    return (x if bias is None else x + bias.reshape(shape)).to(dtype)


def _is_half(x: Tensor) -> bool:
    return x.dtype is float16 or x.dtype is bfloat16


def _rows(
    input: Tensor, length: int, repeat: int, eps: float, weight: Any, bias: Any, shape: Any
) -> Tensor:
    """Return runs of `length` elements standardised, times a weight for each `repeat` of them plus a bias."""
    kind = input._kind
    if weight is None or weight._kind is not kind:
        return _affine(row_norm(input, length, eps, True), weight, bias, shape)
    if bias is not None and bias._kind is kind:
        return affine_row_norm([input, weight, bias], length, repeat, eps, True)
    scaled = affine_row_norm([input, weight], length, repeat, eps, True)
    return _affine(scaled, None, bias, shape)


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
    tensor(input, "batch_norm")
    sizes = input._shape
    if len(sizes) < 2:
        raise ValueError(f"batch_norm(): expected at least 2D input, got {len(sizes)}D")
    channels = sizes[1]
    for name, value in (
        ("running_mean", running_mean),
        ("running_var", running_var),
        ("weight", weight),
        ("bias", bias),
    ):
        if value is not None and value._shape != (channels,):
            raise RuntimeError(f"{name} should contain {channels} elements not {value.numel()}")
    shape = (1, channels, *[1] * (len(sizes) - 2))
    if not training:
        if running_mean is None or running_var is None:
            raise ValueError(
                "Expected running_mean and running_var to be defined when training=False"
            )
        given = [running_mean, running_var, *[t for t in (weight, bias) if t is not None]]
        if (weight is None) is (bias is None):
            if all([t.dtype is input.dtype for t in given]):
                return channel_norm([input, *given], eps)
            if _is_half(input) and all([t.dtype is float32 for t in given]):
                return channel_norm_mixed([input, *given], eps)
        scale = (running_var + eps).rsqrt()
        if weight is not None:
            scale = scale * weight
        shift = -running_mean * scale
        if bias is not None:
            shift = shift + bias
        return (input * scale.reshape(shape) + shift.reshape(shape)).to(input.dtype)
    count = input.numel() // max(channels, 1)
    if count <= 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {list(input.shape)}"
        )
    affine = [t for t in (weight, bias) if t is not None]
    if len(affine) == 2 and all([t.dtype is input.dtype for t in affine]):
        output, mean, rstd = batch_normalize([input, *affine], eps)
    elif len(affine) == 2 and _is_half(input) and all([t.dtype is float32 for t in affine]):
        output, mean, rstd = batch_normalize_mixed([input, *affine], eps)
    else:
        output, mean, rstd = standardize(input, (0, *range(2, len(sizes))), eps)
        if affine:
            output = _affine(output, weight, bias, shape)
    if running_mean is not None and running_var is not None and momentum is not None:
        with no_grad():
            if len(mean._shape) > 1:
                mean, rstd = mean.reshape(-1), rstd.reshape(-1)
            unbiased = count / (count - 1)
            update_statistics(running_mean, running_var, mean, rstd, momentum, eps, unbiased)
    return output


def _last_dims(
    input: Any, normalized_shape: Sequence[int], name: str
) -> tuple[tuple[int, ...], int]:
    """Return the sizes of the last dimensions, and their product."""
    tensor(input, name)
    wanted = tuple(normalized_shape)
    if not wanted:
        raise RuntimeError(f"{name}(): Expected normalized_shape to be at least 1-dimensional")
    if input._shape[-len(wanted) :] != wanted:
        raise RuntimeError(
            f"Given normalized_shape={list(wanted)}, expected input with shape "
            f"[*, {', '.join(map(str, wanted))}], but got input of size{list(input.shape)}"
        )
    return wanted, math.prod(wanted)


def _other_shape(function: str, name: str, value: Tensor, wanted: Any) -> RuntimeError:
    return RuntimeError(
        f"{function}(): expected {name} to be of same shape as normalized_shape, but got {name} of shape "
        f"{list(value.shape)} and normalized_shape = {list(wanted)}"
    )


@seen_by_layers
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Return `input` standardised over its last dimensions.

    Parameters
    ----------
    input : Tensor
        (*, *normalized_shape).
    normalized_shape : sequence of int
        The sizes of those dimensions.
    weight, bias : Tensor, optional
        Of that shape.

    Raises
    ------
    RuntimeError
        If the input's last dimensions are others, or a weight or bias is of another shape.

    Examples
    --------
    >>> import tensorplug as tp
    >>> layer_norm(tp.tensor([1.0, 2.0, 3.0]), (3,))
    tensor([-1.2247,  0.0000,  1.2247])
    """
    wanted, length = _last_dims(input, normalized_shape, "layer_norm")
    if weight is not None and weight._shape != wanted:
        raise _other_shape("layer_norm", "weight", weight, wanted)
    if bias is not None and bias._shape != wanted:
        raise _other_shape("layer_norm", "bias", bias, wanted)
    return _rows(input, length, 1, eps, weight, bias, wanted)


@seen_by_layers
def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Return `input` divided by its root mean square over its last dimensions (Zhang and Sennrich 2019).

    `eps` is the dtype's epsilon unless given.
    """
    wanted, length = _last_dims(input, normalized_shape, "rms_norm")
    if weight is not None and weight._shape != wanted:
        raise _other_shape("rms_norm", "weight", weight, wanted)
    small = finfo(input.dtype).eps if eps is None else eps
    if input.is_complex():
        dims = tuple(range(-len(wanted), 0))
        output = input * ((input * input).mean(dims, keepdim=True) + small).rsqrt()
    elif weight is not None and weight.dtype is input.dtype:
        return affine_row_norm([input, weight], length, 1, small, False)
    else:
        output = row_norm(input, length, small, False)
    return output if weight is None else (output * weight).to(input.dtype)


@seen_by_layers
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Return `input` (N, C, *) standardised over each of `num_groups` groups of channels (Wu and He 2018)."""
    tensor(input, "group_norm")
    if input.ndim < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {input.ndim}"
        )
    channels = input.shape[1]
    if num_groups <= 0 or channels % num_groups:
        raise RuntimeError(
            f"Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(input.shape)} and num_groups={num_groups}"
        )
    for name, value in (("weight", weight), ("bias", bias)):
        if value is not None and value.shape != (channels,):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got "
                f"{name} of shape {list(value.shape)} and input of shape {list(input.shape)}"
            )
    places = math.prod(input.shape[2:])
    shape = (1, channels, *[1] * (input.ndim - 2))
    return _rows(input, channels // num_groups * places, places, eps, weight, bias, shape)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Return `input` (N, C, *) standardised over the positions of each channel of each sample."""
    tensor(input, "instance_norm")
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    n, channels = input.shape[:2]
    count = math.prod(input.shape[2:])
    if count <= 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size {list(input.shape)}"
        )
    shape = (1, channels, *[1] * (input.ndim - 2))
    given = [t for t in (weight, bias) if t is not None]
    alone = running_mean is None or running_var is None
    if alone and all([t.shape == (channels,) for t in given]):
        return _rows(input, count, count, eps, weight, bias, shape)
    output, mean, rstd = standardize(input, tuple(range(2, input.ndim)), eps)
    if running_mean is not None and running_var is not None:
        with no_grad():
            means = mean.reshape(n, channels).mean(0)
            variances = ((rstd.reshape(n, channels) ** -2 - eps) * (count / (count - 1))).mean(0)
            running_mean.mul_(1 - momentum).add_(means.to(running_mean.dtype) * momentum)
            running_var.mul_(1 - momentum).add_(variances.to(running_var.dtype) * momentum)
    return _affine(output, weight, bias, shape)


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Return `input` divided by a power of the mean square over neighbouring channels.

    Krizhevsky et al. 2012, section 3.3, with the mean rather than the sum, as in torch.
    """
    tensor(input, "local_response_norm")
    if input.ndim < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality input (got {input.ndim} dimensions)"
        )
    if input.numel() == 0:
        return input
    before = size // 2
    from .pooling.pooling import avg_pool3d

    squares = (input * input).reshape(input.shape[0], 1, input.shape[1], -1, 1)
    from ..ops.convolution.unfold import pad_zeros

    padded = pad_zeros(squares, (before, 0, 0), (size - 1 - before, 0, 0))
    means = avg_pool3d(padded, (size, 1, 1), 1).reshape(input.shape)
    return input / (means * alpha + k) ** beta


def normalize(
    input: Tensor,
    p: float = 2.0,
    dim: int | Sequence[int] = 1,
    eps: float = 1e-12,
    out: Tensor | None = None,
) -> Tensor:
    """Return `input` divided by its p-norm over `dim`, which counts as at least `eps`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> normalize(tp.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    tensor(input, "normalize")
    ndim = input.ndim
    if p == 2 and type(dim) is int and -ndim <= dim < ndim and eps > 0 and not input.is_complex():
        result = unit_vectors(input, dim % ndim, eps)
    else:
        result = input / input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return result if out is None else out.copy_(result)
