"""Derivatives of functions of representation, and of compounds that need stable ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tensorplug.core.ops.bitwise import bitwise_and
from tensorplug.core.ops.comparison import eq, le
from tensorplug.core.ops.copying import copy
from tensorplug.core.ops.elementary.activation import sigmoid
from tensorplug.core.ops.elementary.circular import cos, sin
from tensorplug.core.ops.elementary.exponential import exp2, log
from tensorplug.core.ops.masking import where
from tensorplug.core.ops.norms import quotient
from tensorplug.core.tensor.predicates import is_tensor

from ..engine.derivatives import derivative, not_differentiable
from ..vmap.vmap_rules import shared_rule
from .arithmetic import zero
from .shape import fitted


def _angle(g: Any, input: Any) -> Any:
    """Return the gradient of an angle: of real numbers it only jumps, and at 0 it counts as flat."""
    if not input.dtype.is_complex:
        return zero(g)
    size = abs(input)
    at_zero = eq(size, 0)
    # Divided twice, for a square may overflow.
    size = where(at_zero, 1, size)
    return where(at_zero, 0, g * (input / size / size * 1j))


def _copysign(g: Any, input: Any, result: Any) -> Any:
    at_zero = eq(input, 0)
    return where(at_zero, 0, g * (result / where(at_zero, 1, input)))


def times_log_input(
    g: Any,
    input: Any,
    other: Any,
    input_shape: tuple[int, ...],
    input_dtype: Any,
    logarithm: Callable[[Any], Any] = log,
    pole: float = 0.0,
) -> Any:
    """Return the gradient of ``input * logarithm(other)``: 0 where that is constant."""
    if not is_tensor(other):
        other = copy(g, other)
    constant = bitwise_and(eq(input, 0), le(other, pole))
    return fitted(g * where(constant, 0, logarithm(other)), input_shape, input_dtype)


_LN2 = math.log(2)


#: Of (y cos(y) - sin(y)) / y**2, the coefficients of y, y**3 …
_SINC_SLOPE = [(-1) ** k * 2 * k / math.factorial(2 * k + 1) for k in range(1, 9)]


def _sinc(g: Any, input: Any) -> Any:
    near = abs(input) < 0.16
    scaled = where(near, 1, input) * math.pi
    slope = (scaled * cos(scaled) - sin(scaled)) / (scaled * scaled)
    # Next to zero that is a difference of numbers that are nearly equal, or squares that vanish.
    small = where(near, input, 0) * math.pi
    square = small * small
    series: Any = _SINC_SLOPE[-1]
    for coefficient in reversed(_SINC_SLOPE[:-1]):
        series = square * series + coefficient
    return g * (where(near, small * series, slope) * math.pi)._conj()


def _xlogy_input(
    g: Any, input: Any, other: Any, input_shape: tuple[int, ...], input_dtype: Any
) -> Any:
    return times_log_input(g, input, other, input_shape, input_dtype)


DERIVATIVES = [
    derivative("angle", input=_angle),
    derivative("copysign", input=_copysign, other=zero),
    derivative(
        "hypot",
        input=lambda g, input, result, input_shape, input_dtype: fitted(
            g * quotient(input, result), input_shape, input_dtype
        ),
        other=lambda g, other, result, other_shape, other_dtype: fitted(
            g * quotient(other, result), other_shape, other_dtype
        ),
    ),
    derivative(
        "logaddexp",
        input=lambda g, input, other, input_shape, input_dtype: fitted(
            g * sigmoid(input - other)._conj(), input_shape, input_dtype
        ),
        other=lambda g, input, other, other_shape, other_dtype: fitted(
            g * sigmoid(other - input)._conj(), other_shape, other_dtype
        ),
    ),
    derivative(
        "logaddexp2",
        input=lambda g, input, other, input_shape, input_dtype: fitted(
            g * sigmoid((input - other) * _LN2), input_shape, input_dtype
        ),
        other=lambda g, input, other, other_shape, other_dtype: fitted(
            g * sigmoid((other - input) * _LN2), other_shape, other_dtype
        ),
    ),
    derivative("sinc", input=_sinc),
    derivative(
        "xlogy",
        input=_xlogy_input,
        other=lambda g, input, other, other_shape, other_dtype: fitted(
            g * (input / other), other_shape, other_dtype
        ),
    ),
    derivative(
        "frexp",
        input=lambda g_mantissa, exponent: g_mantissa * exp2(-exponent.to(g_mantissa.dtype)),
    ),
    derivative(
        "nextafter",
        input=lambda g, input, other, input_shape, input_dtype: fitted(
            where(eq(input, other), 0, g), input_shape, input_dtype
        ),
        other=lambda g, other_shape, other_dtype: fitted(zero(g), other_shape, other_dtype),
    ),
    *not_differentiable("gcd"),
]


VMAP_RULES = [
    shared_rule("as_is", "frexp"),
]
