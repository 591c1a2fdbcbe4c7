"""Derivatives of elementary functions and of rounding; of complex numbers see :mod:`.arithmetic`."""

from __future__ import annotations

import math
from typing import Any

from tensorplug.core.ops.comparison import eq
from tensorplug.core.ops.elementary.activation import (
    relu_backward,
    sigmoid_backward,
    tanh_backward,
)
from tensorplug.core.ops.elementary.circular import cos, sin
from tensorplug.core.ops.elementary.exponential import rsqrt
from tensorplug.core.ops.elementary.trigonometry import cosh, sinh
from tensorplug.core.ops.masking import where

from ..engine.derivatives import derivative
from ..forward.tangents import tangent
from .arithmetic import zero

_LN2 = math.log(2)


_LN10 = math.log(10)


def _acosh(g: Any, input: Any) -> Any:
    # The product of the roots has the branch cut of acosh, the root of the product has not.
    return g * (rsqrt(input + 1) * rsqrt(input - 1))._conj()


def _over_square_radius(value: Any, y: Any, x: Any) -> Any:
    square = y * y + x * x
    at_zero = eq(square, 0)
    return where(at_zero, 0, value / where(at_zero, 1, square))


DERIVATIVES = [
    derivative("acos", input=lambda g, input: -g * rsqrt(1 - input * input)._conj()),
    derivative("acosh", input=_acosh),
    derivative("asin", input=lambda g, input: g * rsqrt(1 - input * input)._conj()),
    derivative("asinh", input=lambda g, input: g * rsqrt(input * input + 1)._conj()),
    derivative("atan", input=lambda g, input: g / (input * input + 1)._conj()),
    derivative(
        "atan2",
        input=lambda g, input, other: g * _over_square_radius(other, input, other),
        other=lambda g, input, other: -g * _over_square_radius(input, input, other),
    ),
    derivative("atanh", input=lambda g, input: g / (1 - input * input)._conj()),
    derivative("cos", input=lambda g, input: g * -sin(input)._conj()),
    derivative("cosh", input=lambda g, input: g * sinh(input)._conj()),
    derivative("exp", input=lambda g, result: g * result._conj()),
    derivative("exp2", input=lambda g, result: g * (result * _LN2)._conj()),
    derivative("expm1", input=lambda g, result: g * (result + 1)._conj()),
    derivative("log", input=lambda g, input: g / input._conj()),
    derivative("log10", input=lambda g, input: g / (input * _LN10)._conj()),
    derivative("log1p", input=lambda g, input: g / (input + 1)._conj()),
    derivative("log2", input=lambda g, input: g / (input * _LN2)._conj()),
    derivative("relu", input=lambda g, result: relu_backward(g, result)),
    derivative("rsqrt", input=lambda g, result: g * (result * result * result * -0.5)._conj()),
    derivative("sigmoid", input=lambda g, result: sigmoid_backward(g, result)),
    derivative("sin", input=lambda g, input: g * cos(input)._conj()),
    derivative("sinh", input=lambda g, input: g * cosh(input)._conj()),
    derivative("sqrt", input=lambda g, result: g / (result * 2)._conj()),
    derivative("tan", input=lambda g, result: g * (result * result + 1)._conj()),
    derivative("tanh", input=lambda g, result: tanh_backward(g, result)),
    derivative("frac", input=lambda g: g),
    derivative("ceil", input=zero),
    derivative("floor", input=zero),
    derivative("rint", input=zero),
    derivative("round", input=zero),
    derivative("trunc", input=zero),
]


TANGENTS = [
    # elementary functions
    tangent("acos", input=lambda t, input: -t * rsqrt(1 - input * input)),
    tangent("acosh", input=lambda t, input: t * (rsqrt(input + 1) * rsqrt(input - 1))),
    tangent("asin", input=lambda t, input: t * rsqrt(1 - input * input)),
    tangent("asinh", input=lambda t, input: t * rsqrt(input * input + 1)),
    tangent("atan", input=lambda t, input: t / (input * input + 1)),
    tangent("atanh", input=lambda t, input: t / (1 - input * input)),
    tangent("cos", input=lambda t, input: -t * sin(input)),
    tangent("cosh", input=lambda t, input: t * sinh(input)),
    tangent("exp", input=lambda t, result: t * result),
    tangent("expm1", input=lambda t, result: t * (result + 1)),
    tangent("log", input=lambda t, input: t / input),
    tangent("log1p", input=lambda t, input: t / (input + 1)),
    tangent("rsqrt", input=lambda t, result: t * (result * result * result * -0.5)),
    tangent("sigmoid", input=lambda t, result: t * (result * (1 - result))),
    tangent("sin", input=lambda t, input: t * cos(input)),
    tangent("sinh", input=lambda t, input: t * cosh(input)),
    tangent("sqrt", input=lambda t, result: t / (result * 2)),
    tangent("tan", input=lambda t, result: t * (result * result + 1)),
    tangent("tanh", input=lambda t, result: t * (1 - result * result)),
]
