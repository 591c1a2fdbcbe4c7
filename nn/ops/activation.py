"""Activations whose derivative is worth a formula: it saves memory, or holds where the body's would not.

The body of each is the definition; half precision is computed in float32, as in torch. The derivatives that
take several passes are ops as well, named ``<activation>_gradient``: a backend can do each in one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensorplug.autograd import derivative
from tensorplug.core.dtypes import bfloat16, float16, float32
from tensorplug.core.operators import composite
from tensorplug.core.ops import cat, where

if TYPE_CHECKING:
    from tensorplug.core import Tensor


def widened(input: Any, function: Callable[[Any], Any]) -> Any:
    """Return ``function(input)``, computed in float32 if the input is of half precision."""
    dtype = input.dtype
    if dtype is float16 or dtype is bfloat16:
        return function(input.to(float32)).to(dtype)
    return function(input)


@composite(method=False)
def leaky_relu(input: Tensor, negative_slope: float) -> Tensor:
    """Return `input` where it is positive, else `input` times the slope."""
    return where(input > 0, input, input * negative_slope)


@composite(method=False)
def leaky_relu_gradient(g: Tensor, input: Tensor, negative_slope: float) -> Tensor:
    """Return `g` times the derivative of :func:`leaky_relu`."""
    return where(input > 0, g, g * negative_slope)


@composite(method=False)
def elu(input: Tensor, alpha: float, scale: float, input_scale: float) -> Tensor:
    """Return scale * x where x > 0, else scale * alpha * (exp(input_scale * x) - 1)."""

    def body(x: Any) -> Any:
        below = (x.clamp(max=0) * input_scale).expm1() * (alpha * scale)
        return where(x > 0, x * scale, below)

    return widened(input, body)


@composite(method=False)
def elu_gradient(
    g: Tensor, input: Tensor, alpha: float, scale: float, input_scale: float
) -> Tensor:
    """Return `g` times the derivative of :func:`elu`."""
    below = (input.clamp(max=0) * input_scale).exp() * (alpha * scale * input_scale)
    return where(input > 0, g * scale, g * below)


@composite(method=False)
def gelu(input: Tensor, approximate: str) -> Tensor:
    """Return x times the normal distribution function of x, or its approximation by tanh."""

    def body(x: Any) -> Any:
        if approximate == "tanh":
            return 0.5 * x * (1 + (_ROOT * (x + _CUBE * x * x * x)).tanh())
        return x * 0.5 * (1 + (x * math.sqrt(0.5)).erf())

    return widened(input, body)


_ROOT = math.sqrt(2 / math.pi)
_CUBE = 0.044715  # of Hendrycks and Gimpel; x * x * x, for array libraries take long over powers


@composite(method=False)
def gelu_gradient(g: Tensor, input: Tensor, approximate: str) -> Tensor:
    """Return `g` times the derivative of :func:`gelu`."""
    x = input
    if approximate == "tanh":
        # (1 + tanh(u)) / 2 is sigmoid(2 u), and 1 - tanh(u)**2, in which digits cancel, a product of two.
        u = 2 * _ROOT * (x + _CUBE * x * x * x)
        s = u.sigmoid()
        return g * (s + x * s * (-u).sigmoid() * (2 * _ROOT * (1 + 3 * _CUBE * x * x)))
    density = (x * x * -0.5).exp() * (1 / math.sqrt(2 * math.pi))
    return g * (0.5 * (1 + (x * math.sqrt(0.5)).erf()) + x * density)


@composite(method=False)
def silu(input: Tensor) -> Tensor:
    """Return x times sigmoid(x)."""
    return widened(input, lambda x: x * x.sigmoid())


@composite(method=False)
def silu_gradient(g: Tensor, input: Tensor) -> Tensor:
    """Return `g` times the derivative of :func:`silu`."""
    s = input.sigmoid()
    return g * (s * (1 + input * (1 - s)))


@composite(method=False)
def softplus(input: Tensor, beta: float, threshold: float) -> Tensor:
    """Return log(1 + exp(beta * x)) / beta, or x where beta * x is above the threshold."""

    def body(x: Any) -> Any:
        z = x * beta
        return where(z > threshold, x, z.clamp(max=threshold).exp().log1p() / beta)

    return widened(input, body)


@composite(method=False)
def softplus_gradient(g: Tensor, input: Tensor, beta: float, threshold: float) -> Tensor:
    """Return `g` times the derivative of :func:`softplus`."""
    z = input * beta
    return where(z > threshold, g, g * z.sigmoid())


@composite(method=False)
def log_sigmoid(input: Tensor) -> Tensor:
    """Return the logarithm of sigmoid(x), which neither overflows nor cancels."""
    return widened(input, lambda x: x.clamp(max=0) - (-x.abs()).exp().log1p())


@composite(method=False)
def log_sigmoid_gradient(g: Tensor, input: Tensor) -> Tensor:
    """Return `g` times the derivative of :func:`log_sigmoid`."""
    return g * (-input).sigmoid()


@composite(method=False)
def mish(input: Tensor) -> Tensor:
    """Return x times tanh(softplus(x))."""
    return widened(input, lambda x: x * softplus(x, 1.0, 20.0).tanh())


@composite(method=False)
def hardtanh(input: Tensor, min_val: float, max_val: float) -> Tensor:
    """Return `input` cut off at both ends; unlike clamp's, its slope at the ends is zero."""
    return input.clamp(min_val, max_val)


@composite(method=False)
def hardtanh_gradient(g: Tensor, input: Tensor, min_val: float, max_val: float) -> Tensor:
    """Return `g` times the derivative of :func:`hardtanh`."""
    return where((input > min_val).logical_and(input < max_val), g, 0.0)


@composite(method=False)
def hardsigmoid(input: Tensor) -> Tensor:
    """Return (x + 3) / 6, cut off at 0 and 1."""
    return widened(input, lambda x: (x + 3).clamp(0, 6) / 6)


@composite(method=False)
def hardsigmoid_gradient(g: Tensor, input: Tensor) -> Tensor:
    """Return `g` times the derivative of :func:`hardsigmoid`."""
    return where((input > -3).logical_and(input < 3), g * (1 / 6), 0.0)


@composite(method=False)
def hardswish(input: Tensor) -> Tensor:
    """Return x times hardsigmoid(x)."""
    return widened(input, lambda x: x * (x + 3).clamp(0, 6) / 6)


@composite(method=False)
def hardswish_gradient(g: Tensor, input: Tensor) -> Tensor:
    """Return `g` times the derivative of :func:`hardswish`."""
    return where(input <= -3, 0.0, where(input < 3, g * (input / 3 + 0.5), g))


@composite(method=False)
def gated_halves(input: Tensor, dim: int) -> Tensor:
    """Return the first half along `dim` times the sigmoid of the second."""
    first, second = input.chunk(2, dim)
    return first * second.sigmoid()


@composite(method=False)
def gated_halves_gradient(g: Tensor, input: Tensor, dim: int) -> Tensor:
    """Return `g` times the derivative of :func:`gated_halves`."""
    first, second = input.chunk(2, dim)
    s = second.sigmoid()
    return cat([g * s, g * first * (s * (1 - s))], dim)


@composite(method=False)
def threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    """Return `input` where it is above the threshold, else the value."""
    return where(input <= threshold, value, input)


@composite(method=False)
def softshrink(input: Tensor, lambd: float) -> Tensor:
    """Return `input` moved towards zero by `lambd`, and zero within; x * 0 keeps nan."""
    return where(input > lambd, input - lambd, where(input < -lambd, input + lambd, input * 0))


@composite(method=False)
def hardshrink(input: Tensor, lambd: float) -> Tensor:
    """Return `input` where its absolute value is above `lambd`, else zero."""
    return where((input >= -lambd).logical_and(input <= lambd), 0.0, input)


@composite(method=False)
def shrink_gradient(g: Tensor, input: Tensor, lambd: float) -> Tensor:
    """Return `g` times the derivative of :func:`softshrink`, which is :func:`hardshrink`'s too."""
    return where((input >= -lambd).logical_and(input <= lambd), 0.0, g)


DERIVATIVES = [
    derivative(
        "leaky_relu",
        input=lambda g, input, negative_slope: leaky_relu_gradient(g, input, negative_slope),
    ),
    derivative(
        "elu",
        input=lambda g, input, alpha, scale, input_scale: elu_gradient(
            g, input, alpha, scale, input_scale
        ),
    ),
    derivative("gelu", input=lambda g, input, approximate: gelu_gradient(g, input, approximate)),
    derivative("silu", input=lambda g, input: silu_gradient(g, input)),
    derivative(
        "softplus",
        input=lambda g, input, beta, threshold: softplus_gradient(g, input, beta, threshold),
    ),
    derivative("log_sigmoid", input=lambda g, input: log_sigmoid_gradient(g, input)),
    derivative(
        "hardtanh",
        # The result lies between the two where the input does, and is there after a write in place too.
        input=lambda g, result, min_val, max_val: hardtanh_gradient(g, result, min_val, max_val),
    ),
    derivative("hardsigmoid", input=lambda g, input: hardsigmoid_gradient(g, input)),
    derivative("gated_halves", input=lambda g, input, dim: gated_halves_gradient(g, input, dim)),
    derivative("hardswish", input=lambda g, input: hardswish_gradient(g, input)),
    derivative("softshrink", input=lambda g, input, lambd: shrink_gradient(g, input, lambd)),
    derivative("hardshrink", input=lambda g, input, lambd: shrink_gradient(g, input, lambd)),
    derivative("threshold", input=lambda g, input, threshold: where(input <= threshold, 0.0, g)),
]
