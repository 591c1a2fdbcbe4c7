"""Normalization by statistics of a batch, a layer, a group or an instance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorplug.autograd import no_grad
from tensorplug.core import Tensor, ops
from tensorplug.nn import functional as F

from ..registry import operator
from ..values import dtype_of

__all__: list[str] = []


def _by_channel(values: Tensor, x: Tensor) -> Tensor:
    return values.reshape((-1,) + (1,) * (x.dim() - 2))


def _normalized(
    x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor, epsilon: float
) -> Tensor:
    if x.dtype == scale.dtype == mean.dtype:
        return F.batch_norm(x, mean, var, scale, bias, False, 0.0, epsilon)
    factor = _by_channel(scale / ops.sqrt(var + epsilon), x)
    return ((x - _by_channel(mean, x)) * factor + _by_channel(bias, x)).to(x.dtype)


def _batch_norm(
    X: Tensor,
    scale: Tensor,
    B: Tensor,
    input_mean: Tensor,
    input_var: Tensor,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
    is_test: int = 0,
    spatial: int = 1,
    training: bool,
    n_outputs: int,
) -> Any:
    """Normalize by the given statistics; in training by the batch's, which then move the given ones."""
    if not (training or training_mode):
        return _normalized(X, scale, B, input_mean, input_var, epsilon)
    dims = [0, *range(2, X.dim())]
    mean = ops.mean(X, dims)
    var = ops.var(X, dims, correction=0)
    factor = _by_channel(scale / ops.sqrt(var + epsilon), X)
    result = (X - _by_channel(mean, X)) * factor + _by_channel(B, X)
    with no_grad():
        new_mean = input_mean * momentum + mean * (1 - momentum)
        new_var = input_var * momentum + var * (1 - momentum)
        if not training_mode:  # the module's training: its buffers move
            input_mean.copy_(new_mean)
            input_var.copy_(new_var)
    return (result.to(X.dtype), new_mean, new_var)[:n_outputs]


operator("BatchNormalization", constant=("input_mean", "input_var"))(_batch_norm)


@operator("InstanceNormalization")
def instance_norm(input: Tensor, scale: Tensor, B: Tensor, *, epsilon: float = 1e-5) -> Tensor:
    dims = list(range(2, input.dim()))
    mean = ops.mean(input, dims, keepdim=True)
    var = ops.var(input, dims, correction=0, keepdim=True)
    result = (input - mean) * ops.rsqrt(var + epsilon)
    return result * _by_channel(scale, input) + _by_channel(B, input)


@operator("LayerNormalization")
def layer_norm(
    X: Tensor,
    Scale: Tensor,
    B: Tensor | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    n_outputs: int,
) -> Any:
    axis %= X.dim()
    shape = tuple(X.shape[axis:])
    if n_outputs == 1 and tuple(Scale.shape) == shape and (B is None or tuple(B.shape) == shape):
        return F.layer_norm(X, shape, Scale, B, epsilon)
    dims = list(range(axis, X.dim()))
    wide = X.to(dtype_of(stash_type)) if X.dtype.itemsize < 4 else X
    mean = ops.mean(wide, dims, keepdim=True)
    inverse = ops.rsqrt(ops.var(wide, dims, correction=0, keepdim=True) + epsilon)
    result = ((wide - mean) * inverse).to(X.dtype) * Scale
    return (result if B is None else result + B, mean, inverse)[:n_outputs]


@operator("RMSNormalization")
def rms_norm(
    X: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Tensor:
    dims = list(range(axis % X.dim(), X.dim()))
    wide = X.to(dtype_of(stash_type)) if X.dtype.itemsize < 4 else X
    square = ops.mean(wide * wide, dims, keepdim=True)
    return (wide * ops.rsqrt(square + epsilon)).to(X.dtype) * scale


@operator("GroupNormalization")
def group_norm_by_group(
    X: Tensor, scale: Tensor, bias: Tensor, *, num_groups: int, epsilon: float = 1e-5
) -> Tensor:
    """Before opset 21 scale and bias had one element for each group."""
    each = X.shape[1] // num_groups
    weights = (scale.repeat_interleave(each), bias.repeat_interleave(each))
    return F.group_norm(X, num_groups, *weights, epsilon)


@operator("GroupNormalization", since=21)
def group_norm(
    X: Tensor,
    scale: Tensor,
    bias: Tensor,
    *,
    num_groups: int,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Tensor:
    return F.group_norm(X, num_groups, scale, bias, epsilon)


@operator("LRN")
def local_response_norm(
    X: Tensor, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Tensor:
    squares = ops.movedim(X * X, 1, -1)
    before = (size - 1) // 2
    windows = F.pad(squares, [before, size - 1 - before]).unfold(-1, size, 1)
    total = ops.movedim(ops.sum(windows, -1), -1, 1)
    return X / (bias + alpha / size * total) ** beta


@operator("LpNormalization")
def lp_normalization(input: Tensor, *, axis: int = -1, p: int = 2) -> Tensor:
    norm = ops.norm(input, p, axis, keepdim=True)
    return ops.where(norm == 0, ops.zeros_like(input), input / norm)


@operator("MeanVarianceNormalization")
def mean_variance_normalization(X: Tensor, *, axes: Sequence[int] = (0, 2, 3)) -> Tensor:
    mean = ops.mean(X, list(axes), keepdim=True)
    square = ops.mean(X * X, list(axes), keepdim=True)
    return (X - mean) / (ops.sqrt(square - mean * mean) + 1e-9)
