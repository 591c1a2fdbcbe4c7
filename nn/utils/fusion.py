"""Folding a batch normalisation, in evaluation mode, into the layer before it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, TypeVar

from tensorplug.autograd import no_grad
from tensorplug.core import Tensor
from tensorplug.core.ops import ones_like, zeros_like

from ..module import Module
from ..parameter import Parameter

M = TypeVar("M", bound=Module)

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]


def fuse_conv_bn_eval(conv: M, bn: Module, transpose: bool = False) -> M:
    """Return a copy of a convolution that does what it and a batch normalisation after it do.

    Parameters
    ----------
    conv : Module
        A convolution in evaluation mode.
    bn : Module
        A batch normalisation in evaluation mode, with running statistics.
    transpose : bool
        Whether the convolution is a transposed one.

    Raises
    ------
    AssertionError
        If either is in training mode, or there are no running statistics.

    Examples
    --------
    >>> import tensorplug as tp
    >>> conv, bn = tp.nn.Conv1d(1, 2, 1).eval(), tp.nn.BatchNorm1d(2).eval()
    >>> x = tp.ones(1, 1, 3)
    >>> tp.allclose(fuse_conv_bn_eval(conv, bn)(x), bn(conv(x)))
    True
    """
    return _fused(conv, bn, transpose)


def fuse_linear_bn_eval(linear: M, bn: Module) -> M:
    """Return a copy of a linear layer that does what it and a batch normalisation after it do.

    Raises
    ------
    AssertionError
        If either is in training mode, the numbers of features differ, or there are no running statistics.
    """
    features: Any = linear.out_features
    if features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
            f"{features} and {bn.num_features}"
        )
    return _fused(linear, bn, False)


def _fused(layer: M, bn: Any, transpose: bool) -> M:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("Fusion needs running statistics: track_running_stats=True")
    fused: Any = deepcopy(layer)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias,
        transpose,
    )  # fmt: skip
    result: M = fused
    return result


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Return weight and bias of a convolution with a batch normalisation folded in.

    Parameters
    ----------
    conv_w, conv_b : Tensor
        (O, C, *kernel), of a transposed convolution (C, O, *kernel); and (O,).
    bn_rm, bn_rv, bn_w, bn_b : Tensor
        (O,): the running mean and variance, the factor and the summand.
    bn_eps : float
        What is added to the variance.
    transpose : bool
        Whether the convolution is a transposed one.
    """
    with no_grad():
        bias = zeros_like(bn_rm) if conv_b is None else conv_b
        weight = ones_like(bn_rm) if bn_w is None else bn_w
        shift = zeros_like(bn_rm) if bn_b is None else bn_b
        factor = weight * (bn_rv + bn_eps).rsqrt()
        shape = [1] * conv_w.ndim
        shape[1 if transpose else 0] = -1
        fused_weight = (conv_w * factor.reshape(shape)).to(conv_w.dtype)
        fused_bias = ((bias - bn_rm) * factor + shift).to(bias.dtype)
    return (
        Parameter(fused_weight, conv_w.requires_grad),
        Parameter(fused_bias, conv_w.requires_grad if conv_b is None else conv_b.requires_grad),
    )


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor,
    bn_b: Tensor,
) -> tuple[Parameter, Parameter]:
    """Return weight and bias of a linear layer with a batch normalisation folded in."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
