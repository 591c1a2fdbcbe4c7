"""Activations, and the products of a gradient with their derivatives.

The body of each is the definition; half precision is computed in float32, as in torch. A derivative saves
memory, or holds where the body's would not. Those that take several passes are ops as well, named
``<activation>_backward``: a backend can do each in one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensorplug.autograd import derivative
from tensorplug.core.device.dtypes import BOOL, FLOATING, INTEGER, float32
from tensorplug.core.device.scalars import Real, coefficient, fitting, held_bound, wrapped
from tensorplug.core.dispatch.op_registry import Delegated, composite
from tensorplug.core.dispatch.out_dtypes import exact_out
from tensorplug.core.errors import type_name
from tensorplug.core.ops import cat, where, zeros_like
from tensorplug.core.ops.rules import in_float32, widened
from tensorplug.core.tensor.base import TensorBase
from tensorplug.core.tensor.shapes import normalize_dim

if TYPE_CHECKING:
    from tensorplug.core import Tensor


def _tensor(input: Any, name: str, argument: str = "input") -> Any:
    if not isinstance(input, TensorBase):
        raise TypeError(f"{name}(): argument '{argument}' must be Tensor, not {type_name(input)}")
    return input


def _floating(input: Any, name: str) -> Any:
    _tensor(input, name)
    if input.dtype.category != FLOATING:
        raise NotImplementedError(
            f"{name}(): not implemented for {input.dtype}; convert the input to a floating-point dtype"
        )
    return input


def _rule_of(name: str) -> Callable[[Any], tuple[Any]]:
    """Return the rule of an activation without options."""

    def canonical(input: Any) -> tuple[Any]:
        return (_floating(input, name),)

    return canonical


def _compared(input: Any) -> Any:
    """Return what numbers are compared with that half precision need not hold."""
    return input.to(float32) if input.dtype.is_half else input


def _canonical_leaky_relu(input: Any, negative_slope: Real = 0.01) -> tuple[Any, float]:
    return input, coefficient(negative_slope, _floating(input, "leaky_relu").dtype)


@composite(rule=_canonical_leaky_relu, method=False)
def leaky_relu(input: Tensor, negative_slope: Real = 0.01) -> Tensor:
    """Return x where it is positive, else ``negative_slope * x``."""
    return where(input > 0, input, input * negative_slope)


@composite(shapes="g(*S), input(*S)", method=False)
def leaky_relu_backward(g: Tensor, input: Tensor, negative_slope: Real) -> Tensor:
    """Return `g` times the derivative of :func:`leaky_relu`."""
    return where(input > 0, g, g * negative_slope)


def _canonical_elu(
    input: Any, alpha: Real = 1.0, scale: Real = 1.0, input_scale: Real = 1.0
) -> tuple[Any, float, float, float]:
    dtype = _floating(input, "elu").dtype
    return input, *[coefficient(factor, dtype) for factor in (alpha, scale, input_scale)]


@composite(rule=_canonical_elu, method=False)
def elu(
    input: Tensor,
    alpha: Real = 1.0,
    scale: Real = 1.0,
    input_scale: Real = 1.0,
) -> Tensor:
    """Return ``scale * x`` where x > 0, else ``scale * alpha * (exp(input_scale * x) - 1)``."""

    def body(x: Any) -> Any:
        below = (x.clamp(max=0) * input_scale).expm1() * (alpha * scale)
        return where(x > 0, x * scale, below)

    return widened(body, input)


@composite(shapes="g(*S), input(*S)", method=False)
def elu_backward(g: Tensor, input: Tensor, alpha: Real, scale: Real, input_scale: Real) -> Tensor:
    """Return `g` times the derivative of :func:`elu`."""

    def body(g: Any, x: Any) -> Any:
        below = (x.clamp(max=0) * input_scale).exp() * (alpha * scale * input_scale)
        return where(x > 0, g * scale, g * below)

    return widened(body, g, input)


# Klambauer et al., "Self-normalizing neural networks", 2017, equation 14.
_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


@composite(rule=_rule_of("selu"), method=False)
def selu(input: Tensor) -> Tensor:
    """Return :func:`elu`, scaled so that mean 0 and variance 1 reproduce themselves."""
    return elu(input, _SELU_ALPHA, _SELU_SCALE, 1.0)


def _canonical_celu(input: Any, alpha: Real = 1.0) -> tuple[Any, float]:
    _floating(input, "celu")
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return input, coefficient(alpha, input.dtype)


@composite(rule=_canonical_celu, method=False)
def celu(input: Tensor, alpha: Real = 1.0) -> Tensor:
    """Return x where it is positive, else ``alpha * (exp(x / alpha) - 1)``."""
    return elu(input, alpha, 1.0, 1.0 / alpha)


def _canonical_gelu(input: Any, approximate: str = "none") -> tuple[Any, str]:
    _floating(input, "gelu")
    if approximate not in ("none", "tanh"):
        raise RuntimeError(f"approximate argument must be either none or tanh, got {approximate!r}")
    return input, approximate


@composite(rule=_canonical_gelu, method=False)
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

    def body(x: Any) -> Any:
        # (1 + tanh(u)) / 2 is sigmoid(2 u), and 1 + erf(u) is erfc(-u): below 0 these keep their digits.
        if approximate == "tanh":
            return x * (2 * _ROOT * (x + _CUBE * x * x * x)).sigmoid()
        return x * 0.5 * (x * -math.sqrt(0.5)).erfc()

    return widened(body, input)


_ROOT = math.sqrt(2 / math.pi)
_CUBE = 0.044715  # of Hendrycks and Gimpel; x * x * x, for array libraries take long over powers


@composite(shapes="g(*S), input(*S)", method=False)
def gelu_backward(g: Tensor, input: Tensor, approximate: str) -> Tensor:
    """Return `g` times the derivative of :func:`gelu`."""

    def body(g: Any, x: Any) -> Any:
        if approximate == "tanh":
            # (1 + tanh(u)) / 2 is sigmoid(2 u), and 1 - tanh(u)**2, in which digits cancel, a product of two.
            u = 2 * _ROOT * (x + _CUBE * x * x * x)
            s = u.sigmoid()
            return g * (s + x * s * (-u).sigmoid() * (2 * _ROOT * (1 + 3 * _CUBE * x * x)))
        density = (x * x * -0.5).exp() * (1 / math.sqrt(2 * math.pi))
        return g * (0.5 * (x * -math.sqrt(0.5)).erfc() + x * density)

    return widened(body, g, input)


def _canonical_silu(input: Any) -> Any:
    if _tensor(input, "silu").dtype.is_complex:
        return Delegated.to(_times_sigmoid, input)
    return (_floating(input, "silu"),)


def _times_sigmoid(input: Any) -> Any:
    return input * input.sigmoid()


@composite(rule=_canonical_silu, method=False)
def silu(input: Tensor) -> Tensor:
    """Return x times sigmoid(x)."""
    return widened(lambda x: x * x.sigmoid(), input)


@composite(shapes="g(*S), input(*S)", method=False)
def silu_backward(g: Tensor, input: Tensor) -> Tensor:
    """Return `g` times the derivative of :func:`silu`."""

    def body(g: Any, x: Any) -> Any:
        s = x.sigmoid()
        return g * (s * (1 + x * (1 - s)))

    return widened(body, g, input)


def _canonical_softplus(
    input: Any, beta: Real = 1.0, threshold: Real = 20.0
) -> tuple[Any, float, float]:
    dtype = _floating(input, "softplus").dtype
    return input, coefficient(beta, dtype), coefficient(threshold, dtype)


@composite(rule=_canonical_softplus, method=False)
def softplus(input: Tensor, beta: Real = 1.0, threshold: Real = 20.0) -> Tensor:
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

    def body(x: Any) -> Any:
        z = x * beta
        return where(z > threshold, x, z.clamp(max=threshold).exp().log1p() / beta)

    return widened(body, input)


@composite(shapes="g(*S), input(*S)", method=False)
def softplus_backward(g: Tensor, input: Tensor, beta: Real, threshold: Real) -> Tensor:
    """Return `g` times the derivative of :func:`softplus`."""

    def body(g: Any, x: Any) -> Any:
        z = x * beta
        return where(z > threshold, g, g * z.sigmoid())

    return widened(body, g, input)


@composite(rule=_rule_of("logsigmoid"), rows=True, method=False)
def logsigmoid(input: Tensor) -> Tensor:
    """Return ``log(sigmoid(x))``, which neither overflows nor cancels.

    Examples
    --------
    >>> import tensorplug as tp
    >>> logsigmoid(tp.tensor([-1000.0, 0.0]))
    tensor([-1.0000e+03, -6.9315e-01])
    """
    return widened(lambda x: x.clamp(max=0) - (-x.abs()).exp().log1p(), input)


@composite(shapes="g(*S), input(*S)", method=False)
def logsigmoid_backward(g: Tensor, input: Tensor) -> Tensor:
    """Return `g` times the derivative of :func:`logsigmoid`."""
    return widened(lambda g, x: g * (-x).sigmoid(), g, input)


@composite(rule=_rule_of("mish"), method=False)
def mish(input: Tensor) -> Tensor:
    """Return x times tanh(softplus(x))."""
    return widened(lambda x: x * softplus(x, 1.0, 20.0).tanh(), input)


@composite(shapes="g(*S), input(*S)", method=False)
def mish_backward(g: Tensor, input: Tensor) -> Tensor:
    """Return `g` times the derivative of :func:`mish`."""

    def body(g: Any, x: Any) -> Any:
        t = softplus(x, 1.0, 20.0).tanh()
        return g * (t + x * (1 - t * t) * x.sigmoid())

    return widened(body, g, input)


def _canonical_hardtanh(
    input: Any, min_val: Real = -1.0, max_val: Real = 1.0
) -> tuple[Any, float, float]:
    dtype = _tensor(input, "hardtanh").dtype
    if dtype.category == BOOL:
        raise RuntimeError("hardtanh(): Bool inputs not supported for hardtanh")
    if dtype.category == INTEGER:
        if not dtype.is_signed and (min_val < 0 or max_val < 0):
            raise RuntimeError(
                "hardtanh(): cannot do hardtanh on an unsigned type with negative limits, got "
                f"{min_val} and {max_val}"
            )
        min_val, max_val = fitting(min_val, dtype), fitting(max_val, dtype)
    return input, min(min_val, max_val), max_val  # the upper one counts, as in clamp


@composite(rule=_canonical_hardtanh, method=False)
def hardtanh(input: Tensor, min_val: Real = -1.0, max_val: Real = 1.0) -> Tensor:
    """Return `input` cut off at both ends; unlike clamp's, its slope at the ends is zero."""
    return input.clamp(min_val, max_val)


@composite(shapes="input(*S)", method=False)
def relu6(input: Tensor) -> Tensor:
    """Return ``min(max(0, x), 6)``."""
    return hardtanh(input, 0, 6)


@composite(shapes="g(*S), input(*S)", method=False)
def hardtanh_backward(g: Tensor, input: Tensor, min_val: Real, max_val: Real) -> Tensor:
    """Return `g` times the derivative of :func:`hardtanh`."""
    x = _compared(input)
    return where((x > min_val).logical_and(x < max_val), g, 0.0)


@composite(rule=_rule_of("hardsigmoid"), method=False)
def hardsigmoid(input: Tensor) -> Tensor:
    """Return (x + 3) / 6, cut off at 0 and 1."""
    return widened(lambda x: (x + 3).clamp(0, 6) / 6, input)


@composite(shapes="g(*S), input(*S)", method=False)
def hardsigmoid_backward(g: Tensor, input: Tensor) -> Tensor:
    """Return `g` times the derivative of :func:`hardsigmoid`."""
    return where((input > -3).logical_and(input < 3), g * (1 / 6), 0.0)


@composite(rule=_rule_of("hardswish"), method=False)
def hardswish(input: Tensor) -> Tensor:
    """Return x times hardsigmoid(x)."""
    return widened(lambda x: x * (x + 3).clamp(0, 6) / 6, input)


@composite(shapes="g(*S), input(*S)", method=False)
def hardswish_backward(g: Tensor, input: Tensor) -> Tensor:
    """Return `g` times the derivative of :func:`hardswish`."""

    def body(g: Any, x: Any) -> Any:
        return where(x <= -3, 0.0, where(x < 3, g * (x / 3 + 0.5), g))

    return widened(body, g, input)


def _canonical_glu(input: Any, dim: int = -1) -> tuple[Any, int]:
    _floating(input, "glu")
    shape = input._shape
    if not shape:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    dim = normalize_dim(dim, len(shape), "glu")
    if shape[dim] % 2:
        raise RuntimeError(
            f"Halving dimension must be even, but dimension {dim} is size {shape[dim]}"
        )
    return input, dim


@composite(rule=_canonical_glu, method=False)
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Return the first half along `dim` times the sigmoid of the second (Dauphin et al. 2017).

    Raises
    ------
    RuntimeError
        If that dimension's size is odd, or there is none.
    """

    def body(x: Any) -> Any:
        first, second = x.chunk(2, dim)
        return first * second.sigmoid()

    return widened(body, input)


def _check_halves(g: Any, input: Any, dim: int) -> None:
    shape, dim = input._shape, normalize_dim(dim, input.ndim, "glu_backward")
    if shape[dim] % 2 or g._shape != (*shape[:dim], shape[dim] // 2, *shape[dim + 1 :]):
        raise RuntimeError(
            f"glu_backward(): a gradient {list(g._shape)} is not of half of {list(shape)}, dimension {dim}"
        )


@composite(shapes="input(*S), g(*)", rule=_check_halves, method=False)
def glu_backward(g: Tensor, input: Tensor, dim: int) -> Tensor:
    """Return `g` times the derivative of :func:`glu`."""

    def body(g: Any, x: Any) -> Any:
        first, second = x.chunk(2, dim)
        s = second.sigmoid()
        return cat([g * s, g * first * (s * (1 - s))], dim)

    return widened(body, g, input)


def _canonical_threshold(input: Any, threshold: Real, value: Real) -> tuple[Any, float, float]:
    dtype = _tensor(input, "threshold").dtype
    if dtype.category == BOOL:
        raise NotImplementedError("threshold() is not implemented for dtype bool")
    number = fitting if dtype.category == INTEGER else wrapped
    return input, number(threshold, dtype), fitting(value, dtype)


@composite(rule=_canonical_threshold, method=False)
def threshold(input: Tensor, threshold: Real, value: Real) -> Tensor:
    """Return x where it is above `threshold`, else `value`."""
    return where(_compared(input) <= threshold, value, input)


def _canonical_softshrink(input: Any, lambd: Real = 0.5) -> tuple[Any, float]:
    _floating(input, "softshrink")
    if not lambd >= 0:  # nan neither
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd}.")
    return input, fitting(lambd, input.dtype)


@composite(rule=_canonical_softshrink, method=False)
def softshrink(input: Tensor, lambd: Real = 0.5) -> Tensor:
    """Return x moved towards zero by `lambd`, and zero within.

    Raises
    ------
    RuntimeError
        If `lambd` is negative.
    """

    def body(x: Any) -> Any:
        # x * 0 keeps nan.
        return where(x > lambd, x - lambd, where(x < -lambd, x + lambd, x * 0))

    return widened(body, input)


def _canonical_hardshrink(input: Any, lambd: Real = 0.5) -> tuple[Any, float]:
    return input, held_bound(lambd, _floating(input, "hardshrink").dtype)


@composite(rule=_canonical_hardshrink, method=False)
def hardshrink(input: Tensor, lambd: Real = 0.5) -> Tensor:
    """Return x where its absolute value is above `lambd`, else zero."""
    return where((input >= -lambd).logical_and(input <= lambd), 0.0, input)


@composite(shapes="g(*S), input(*S)", method=False)
def hardshrink_backward(g: Tensor, input: Tensor, lambd: Real) -> Tensor:
    """Return `g` times the derivative of :func:`softshrink`, which is :func:`hardshrink`'s too."""
    return where((input >= -lambd).logical_and(input <= lambd), 0.0, g)


def _canonical_tanhshrink(input: Any) -> tuple[Any]:
    return (_tensor(input, "tanhshrink"),)


@composite(rule=_canonical_tanhshrink, method=False)
@in_float32
def tanhshrink(input: Tensor) -> Tensor:
    """Return ``x - tanh(x)``."""
    return input - input.tanh()


def _canonical_softsign(input: Any) -> tuple[Any]:
    return (_tensor(input, "softsign"),)


@composite(rule=_canonical_softsign, method=False)
@in_float32
def softsign(input: Tensor) -> Tensor:
    """Return ``x / (1 + |x|)``."""
    return input / (input.abs() + 1)


def _canonical_prelu(input: Any, weight: Any) -> tuple[Any, Any]:
    _floating(input, "prelu")
    _tensor(weight, "prelu", "weight")
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
    return input, weight


@composite(rule=_canonical_prelu, method=False)
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
    if weight.ndim and input.ndim >= 2:
        weight = weight.reshape(-1, *[1] * (input.ndim - 2))
    elif weight.ndim and not input.ndim:
        weight = weight.reshape(())
    return where(input > 0, input, weight * input)


def _canonical_rrelu(
    input: Any, lower: Real = 1.0 / 8, upper: Real = 1.0 / 3, training: bool = False
) -> tuple[Any, float, float, bool]:
    _floating(input, "rrelu")
    for label, bound in (("lower", lower), ("upper", upper)):
        if not math.isfinite(bound):
            raise RuntimeError(f"rrelu(): {label} bound must be finite, got {bound}")
    if lower > upper:
        raise RuntimeError(
            f"Lower bound should be less than or equal to the upper bound, got {lower} and {upper}"
        )
    return input, lower, upper, bool(training)


@composite(rule=_canonical_rrelu, rows=True, random=True, method=False)
def rrelu(
    input: Tensor,
    lower: Real = 1.0 / 8,
    upper: Real = 1.0 / 3,
    training: bool = False,
) -> Tensor:
    """Return :func:`leaky_relu` with a random slope per element in training, else the mean slope.

    Raises
    ------
    RuntimeError
        If `lower` is above `upper`.
    """
    if not training:
        return leaky_relu(input, (lower + upper) / 2)
    slopes = zeros_like(input, requires_grad=False).uniform_(lower, upper)
    return where(input > 0, input, input * slopes)


DERIVATIVES = [
    derivative(
        "leaky_relu",
        input=lambda g, input, negative_slope: leaky_relu_backward(g, input, negative_slope),
    ),
    derivative(
        "elu",
        input=lambda g, input, alpha, scale, input_scale: elu_backward(
            g, input, alpha, scale, input_scale
        ),
    ),
    derivative("gelu", input=lambda g, input, approximate: gelu_backward(g, input, approximate)),
    derivative("silu", input=lambda g, input: silu_backward(g, input)),
    derivative("mish", input=lambda g, input: mish_backward(g, input)),
    derivative(
        "softplus",
        input=lambda g, input, beta, threshold: softplus_backward(g, input, beta, threshold),
    ),
    derivative("logsigmoid", input=lambda g, input: logsigmoid_backward(g, input)),
    derivative(
        "hardtanh",
        input=lambda g, input, min_val, max_val: hardtanh_backward(g, input, min_val, max_val),
    ),
    derivative("hardsigmoid", input=lambda g, input: hardsigmoid_backward(g, input)),
    derivative("glu", input=lambda g, input, dim: glu_backward(g, input, dim)),
    derivative("hardswish", input=lambda g, input: hardswish_backward(g, input)),
    derivative(
        "softshrink",
        input=lambda g, input, lambd: hardshrink_backward(g, input, held_bound(lambd, input.dtype)),
    ),
    derivative("hardshrink", input=lambda g, input, lambd: hardshrink_backward(g, input, lambd)),
    derivative(
        "threshold",
        input=lambda g, input, threshold: where(_compared(input) <= threshold, 0.0, g),
    ),
]

exact_out(gelu, hardshrink, logsigmoid, softplus, softshrink)
