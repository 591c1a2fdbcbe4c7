"""Derivatives of functions of representation, and of compounds that need stable ones."""

from __future__ import annotations

import math
from typing import Any

from tensorplug.core.ops.bitwise import bitwise_and
from tensorplug.core.ops.comparison import eq, le
from tensorplug.core.ops.copying import cast, copy
from tensorplug.core.ops.elementary import cos, exp, exp2, log, sin
from tensorplug.core.ops.selection import choose
from tensorplug.core.tensor_base import TensorBase

from ..derivatives import derivative, not_differentiable
from .pointwise import zero
from .shape import sum_to_shape


def _copysign(g: Any, input: Any, result: Any) -> Any:
    at_zero = eq(input, 0)
    return choose(at_zero, 0, g * (result / choose(at_zero, 1, input)))


def fitted(gradient: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return the gradient of a composite's argument with broadcasting and promotion undone.

    Of a primitive the engine does this.
    """
    return cast(sum_to_shape(gradient, shape), dtype)


def hypot_of(g, value, result, shape, dtype):  # type: ignore[no-untyped-def]
    return fitted(g * (value / result), shape, dtype)


def logaddexp_of(g, value, result, shape, dtype):  # type: ignore[no-untyped-def]
    return fitted(g * exp(value - result).conj(), shape, dtype)


def logaddexp2_of(g, value, result, shape, dtype):  # type: ignore[no-untyped-def]
    return fitted(g * exp2(value - result), shape, dtype)


def times_log_input(  # type: ignore[no-untyped-def]
    g, input, other, shape, dtype, logarithm=log, pole=0.0
):
    """Return the gradient of ``input * logarithm(other)``, whose limit 0 at (0, pole) is constant."""
    if not isinstance(other, TensorBase):
        other = copy(g, other)
    constant = bitwise_and(eq(input, 0), le(other, pole))
    return fitted(g * choose(constant, 0, logarithm(other)), shape, dtype)


def _sinc(g: Any, input: Any) -> Any:
    at_zero = eq(input, 0)
    x = choose(at_zero, 1, input)
    scaled = x * math.pi
    slope = (scaled * cos(scaled) - sin(scaled)) / (scaled * x)
    return choose(at_zero, 0, g * slope.conj())


DERIVATIVES = [
    derivative("copysign", input=_copysign, other=zero),
    derivative(
        "hypot",
        input=lambda g, input, result, input_shape, input_dtype: hypot_of(
            g, input, result, input_shape, input_dtype
        ),
        other=lambda g, other, result, other_shape, other_dtype: hypot_of(
            g, other, result, other_shape, other_dtype
        ),
    ),
    derivative(
        "logaddexp",
        input=lambda g, input, result, input_shape, input_dtype: logaddexp_of(
            g, input, result, input_shape, input_dtype
        ),
        other=lambda g, other, result, other_shape, other_dtype: logaddexp_of(
            g, other, result, other_shape, other_dtype
        ),
    ),
    derivative(
        "logaddexp2",
        input=lambda g, input, result, input_shape, input_dtype: logaddexp2_of(
            g, input, result, input_shape, input_dtype
        ),
        other=lambda g, other, result, other_shape, other_dtype: logaddexp2_of(
            g, other, result, other_shape, other_dtype
        ),
    ),
    derivative("sinc", input=_sinc),
    derivative(
        "xlogy",
        input=lambda g, input, other, input_shape, input_dtype: times_log_input(
            g, input, other, input_shape, input_dtype
        ),
        other=lambda g, input, other, other_shape, other_dtype: fitted(
            g * (input / other), other_shape, other_dtype
        ),
    ),
    *not_differentiable("frexp_parts", "gcd", "nextafter"),
]
