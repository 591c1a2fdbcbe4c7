"""Activations, applied element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.dtypes import FLOATING
from tensorplug.core.layers import seen_by_layers
from tensorplug.core.ops import where, zeros_like
from tensorplug.core.writing import inplace as write_in_place

from ..ops import activation as ops
from ._common import tensor

__all__ = [
    "celu",
    "celu_",
    "elu",
    "elu_",
    "gelu",
    "glu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "leaky_relu",
    "leaky_relu_",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rrelu",
    "rrelu_",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
]


def _floating(input: Any, name: str) -> None:
    tensor(input, name)
    if input.dtype.category != FLOATING:
        raise NotImplementedError(
            f"{name}(): not implemented for {input.dtype}; convert the input to a floating-point dtype"
        )


def _apply(input: Tensor, inplace: bool, function: Callable[..., Tensor], *options: Any) -> Tensor:
    """Return ``function(input, *options)``, written into the input if `inplace`."""
    op = getattr(function, "op", None)
    if inplace and op is not None:
        return write_in_place(op, f"{op.name}_", input, options, {})
    if inplace:
        # The function may save its input for the backward pass, so it gets a copy of what is lost.
        return input.copy_(function(input.clone(), *options))
    return function(input, *options)


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``max(0, x)``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> relu(tp.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    tensor(input, "relu")
    return input.relu_() if inplace else input.relu()


def relu_(input: Tensor) -> Tensor:
    """Return :func:`relu`, in place."""
    return relu(input, True)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``min(max(0, x), 6)``."""
    return hardtanh(input, 0, 6, inplace)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """Return `input` cut off at `min_val` and `max_val`.

    Raises
    ------
    ValueError
        If `min_val` is above `max_val`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> hardtanh(tp.tensor([-3.0, 0.5]))
    tensor([-1.0000,  0.5000])
    """
    tensor(input, "hardtanh")
    if min_val > max_val:
        raise ValueError(
            f"hardtanh(): min_val ({min_val}) cannot be greater than max_val ({max_val})"
        )
    return _apply(input, inplace, ops.hardtanh, min_val, max_val)


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """Return :func:`hardtanh`, in place."""
    return hardtanh(input, min_val, max_val, True)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return x where it is positive, else ``negative_slope * x``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> leaky_relu(tp.tensor([-1.0, 2.0]), 0.5)
    tensor([-0.5000,  2.0000])
    """
    _floating(input, "leaky_relu")
    return _apply(input, inplace, ops.leaky_relu, negative_slope)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """Return :func:`leaky_relu`, in place."""
    return leaky_relu(input, negative_slope, True)


@seen_by_layers
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Return x where it is positive, else ``weight * x`` with one weight, or one per channel.

    Parameters
    ----------
    input : Tensor
        (N, C, *), or any shape for a single weight.
    weight : Tensor
        (C,), (1,) or ().

    Raises
    ------
    RuntimeError
        If the numbers of weights and channels differ.

    Notes
    -----
    He et al., "Delving deep into rectifiers", 2015.
    """
    _floating(input, "prelu")
    tensor(weight, "prelu", "weight")
    if weight.dtype is not input.dtype:
        raise RuntimeError(
            f"prelu: Type promoting not supported. Got {input.dtype} and {weight.dtype}"
        )
    if weight.ndim > 1:
        raise RuntimeError(
            f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}"
        )
    if weight.numel() != 1:
        if not input.ndim:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = input.shape[1] if input.ndim >= 2 else 1
        if channels != weight.numel():
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{weight.numel()} and channel size = {channels}."
            )
    if weight.ndim and input.ndim >= 2:
        weight = weight.reshape(-1, *[1] * (input.ndim - 2))
    elif weight.ndim and not input.ndim:
        weight = weight.reshape(())
    return where(input > 0, input, weight * input)


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Return :func:`leaky_relu` with a random slope per element in training, else the mean slope.

    Raises
    ------
    RuntimeError
        If `lower` is above `upper`.
    """
    _floating(input, "rrelu")
    if lower > upper:
        raise RuntimeError(
            f"Lower bound should be less than or equal to the upper bound, got {lower} and {upper}"
        )
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    slopes = zeros_like(input, requires_grad=False).uniform_(lower, upper)
    return _apply(input, inplace, lambda x: where(x > 0, x, x * slopes))


def rrelu_(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False
) -> Tensor:
    """Return :func:`rrelu`, in place."""
    return rrelu(input, lower, upper, training, True)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x where it is positive, else ``alpha * (exp(x) - 1)``."""
    _floating(input, "elu")
    return _apply(input, inplace, ops.elu, alpha, 1.0, 1.0)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Return :func:`elu`, in place."""
    return elu(input, alpha, True)


# Klambauer et al., "Self-normalizing neural networks", 2017, equation 14.
_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return :func:`elu`, scaled so that mean 0 and variance 1 reproduce themselves."""
    _floating(input, "selu")
    return _apply(input, inplace, ops.elu, _SELU_ALPHA, _SELU_SCALE, 1.0)


def selu_(input: Tensor) -> Tensor:
    """Return :func:`selu`, in place."""
    return selu(input, True)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x where it is positive, else ``alpha * (exp(x / alpha) - 1)``.

    Raises
    ------
    RuntimeError
        If `alpha` is zero.
    """
    _floating(input, "celu")
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return _apply(input, inplace, ops.elu, alpha, 1.0, 1.0 / alpha)


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Return :func:`celu`, in place."""
    return celu(input, alpha, True)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    r"""Return :math:`x \Phi(x)`, with the distribution function of the standard normal.

    Parameters
    ----------
    input : Tensor
        Floating point, any shape.
    approximate : {"none", "tanh"}
        Whether to compute it by tanh.

    Raises
    ------
    RuntimeError
        If `approximate` is neither.

    Notes
    -----
    Hendrycks and Gimpel, "Gaussian error linear units", 2016.

    Examples
    --------
    >>> import tensorplug as tp
    >>> gelu(tp.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.1587,  0.0000,  0.8413])
    """
    _floating(input, "gelu")
    if approximate not in ("none", "tanh"):
        raise RuntimeError(f"approximate argument must be either none or tanh, got {approximate!r}")
    return ops.gelu(input, approximate)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``x * sigmoid(x)``."""
    _floating(input, "silu")
    return _apply(input, inplace, ops.silu)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``x * tanh(softplus(x))`` (Misra 2019)."""
    _floating(input, "mish")
    return _apply(input, inplace, ops.mish)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``x * hardsigmoid(x)`` (Howard et al. 2019)."""
    _floating(input, "hardswish")
    return _apply(input, inplace, ops.hardswish)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``(x + 3) / 6``, cut off at 0 and 1."""
    _floating(input, "hardsigmoid")
    return _apply(input, inplace, ops.hardsigmoid)


def sigmoid(input: Tensor) -> Tensor:
    """Return ``1 / (1 + exp(-x))``."""
    tensor(input, "sigmoid")
    return input.sigmoid()


def logsigmoid(input: Tensor) -> Tensor:
    """Return ``log(sigmoid(x))``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> logsigmoid(tp.tensor([-1000.0, 0.0]))
    tensor([-1.0000e+03, -6.9315e-01])
    """
    _floating(input, "logsigmoid")
    return ops.log_sigmoid(input)


def tanh(input: Tensor) -> Tensor:
    """Return the hyperbolic tangent."""
    tensor(input, "tanh")
    return input.tanh()


def tanhshrink(input: Tensor) -> Tensor:
    """Return ``x - tanh(x)``."""
    tensor(input, "tanhshrink")
    return input - input.tanh()


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Return ``log(1 + exp(beta * x)) / beta``.

    Parameters
    ----------
    input : Tensor
        Floating point, any shape.
    beta : float
        How sharp the bend is.
    threshold : float
        Where ``beta * x`` is above it, x itself is returned.
    """
    _floating(input, "softplus")
    return ops.softplus(input, beta, threshold)


def softsign(input: Tensor) -> Tensor:
    """Return ``x / (1 + |x|)``."""
    tensor(input, "softsign")
    return input / (input.abs() + 1)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Return x where it is above `threshold`, else `value`."""
    tensor(input, "threshold")
    return _apply(input, inplace, ops.threshold, threshold, value)


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """Return the function `threshold`, in place."""
    return _apply(input, True, ops.threshold, threshold, value)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Return x moved towards zero by `lambd`, and zero within.

    Raises
    ------
    RuntimeError
        If `lambd` is negative.
    """
    _floating(input, "softshrink")
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd}.")
    return ops.softshrink(input, lambd)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Return x where its absolute value is above `lambd`, else zero."""
    _floating(input, "hardshrink")
    return ops.hardshrink(input, lambd)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Return the first half along `dim` times the sigmoid of the second (Dauphin et al. 2017).

    Raises
    ------
    RuntimeError
        If that dimension's size is odd, or there is none.
    """
    _floating(input, "glu")
    if not input.ndim:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    if input.shape[dim] % 2:
        raise RuntimeError(
            f"Halving dimension must be even, but dimension {dim} is size {input.shape[dim]}"
        )
    return ops.gated_halves(input, dim)
