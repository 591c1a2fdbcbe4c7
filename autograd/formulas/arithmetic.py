"""Derivatives of arithmetic of elements.

A real function of real input has g * f'(x); a holomorphic one of complex input g * conj(f'(x)),
which is torch's convention of gradients of complex numbers. ``conj`` of a real tensor is itself.
"""

from __future__ import annotations

import cmath
import math
from typing import Any

from tensorplug.core.ops.arithmetic.division import div, floor_divide
from tensorplug.core.ops.arithmetic.pointwise import sgn
from tensorplug.core.ops.arithmetic.powers import pow
from tensorplug.core.ops.bitwise import bitwise_and, bitwise_or
from tensorplug.core.ops.comparison import eq, ge, ne
from tensorplug.core.ops.creation.creation_like import zeros_like
from tensorplug.core.ops.elementary.exponential import log
from tensorplug.core.ops.elementary.rounding import trunc
from tensorplug.core.ops.masking import where
from tensorplug.core.tensor.tensor import Tensor

from ..engine.derivatives import derivative
from ..forward.tangents import holomorphic, linear, tangent
from .shape import fitted


def _lerp_weight(
    g: Any, input: Any, end: Any, weight_shape: tuple[int, ...], weight_dtype: Any
) -> Any:
    return fitted(g * (end - input)._conj(), weight_shape, weight_dtype)


def _divisor(
    g: Any,
    tensor1: Any,
    tensor2: Any,
    value: Any,
    tensor2_shape: tuple[int, ...],
    tensor2_dtype: Any,
) -> Any:
    slope = (tensor1 * value / tensor2 / tensor2)._conj()
    return fitted(-g * slope, tensor2_shape, tensor2_dtype)


def zero(g: Any) -> Any:
    """Return zeros like `g`, also where `g` is infinite or nan."""
    return zeros_like(g)


def conjugate(value: Any) -> Any:
    """Return the conjugate of a tensor or number."""
    return value._conj() if isinstance(value, Tensor) else value.conjugate()


def _pow_input(g: Any, input: Any, exponent: Any) -> Any:
    if isinstance(exponent, Tensor):
        # x**0 is constant in x; how its slope grows with the exponent shows in the second derivative.
        constant = bitwise_and(eq(exponent, 0), bitwise_or(eq(input, 0), ne(input, input)))
        return g * conjugate(exponent * pow(where(constant, 1, input), exponent - 1))
    if exponent == 2:
        return g * conjugate(input * 2)
    return g * conjugate(exponent * pow(input, exponent - 1)) if exponent else zero(g)


def _pow_exponent(g: Any, input: Any, exponent: Any, result: Any) -> Any:
    # The limit of x**y * log(x) for x -> 0 is 0 where the power is defined.
    if isinstance(input, Tensor):
        at_zero = eq(input, 0)
        if not exponent.is_complex():
            at_zero = bitwise_and(at_zero, ge(exponent, 0))
        return g * conjugate(result * log(where(at_zero, 1, input)))
    if input == 0:
        slope = g * conjugate(result * -math.inf)
        return zero(g) if exponent.is_complex() else where(ge(exponent, 0), 0, slope)
    if isinstance(input, complex) or exponent.is_complex():
        return g * conjugate(result * cmath.log(input))
    return g * conjugate(result * (math.log(input) if input > 0 else math.nan))


def _abs_tangent(t: Any, input: Any) -> Any:
    if not input.dtype.is_complex:
        return t * sgn(input)
    return (t * sgn(input)._conj()).real


DERIVATIVES = [
    derivative("add_scaled", input=lambda g: g, other=lambda g, alpha: g * alpha),
    derivative(
        "addcdiv",
        input=lambda g, input_shape, input_dtype: fitted(g, input_shape, input_dtype),
        tensor1=lambda g, tensor2, value, tensor1_shape, tensor1_dtype: fitted(
            g * (value / tensor2)._conj(), tensor1_shape, tensor1_dtype
        ),
        tensor2=_divisor,
    ),
    derivative(
        "addcmul",
        input=lambda g, input_shape, input_dtype: fitted(g, input_shape, input_dtype),
        tensor1=lambda g, tensor2, value, tensor1_shape, tensor1_dtype: fitted(
            g * (tensor2 * value)._conj(), tensor1_shape, tensor1_dtype
        ),
        tensor2=lambda g, tensor1, value, tensor2_shape, tensor2_dtype: fitted(
            g * (tensor1 * value)._conj(), tensor2_shape, tensor2_dtype
        ),
    ),
    derivative(
        "lerp",
        input=lambda g, weight, input_shape, input_dtype: fitted(
            g * conjugate(1 - weight), input_shape, input_dtype
        ),
        end=lambda g, weight, end_shape, end_dtype: fitted(
            g * conjugate(weight), end_shape, end_dtype
        ),
        weight=_lerp_weight,
    ),
    derivative("abs", input=lambda g, input: g * sgn(input)),
    derivative("add", input=lambda g: g, other=lambda g: g),
    derivative("conj_physical", input=lambda g: g._conj()),
    derivative("floor_divide", input=zero, other=zero),
    derivative(
        "trunc_divide",
        input=lambda g, input_shape: g.new_zeros(input_shape),
        other=lambda g, other_shape: g.new_zeros(other_shape),
    ),
    derivative(
        "fmod",
        input=lambda g: g,
        other=lambda g, input, other: -g * trunc(div(input, other)),
    ),
    derivative(
        "mul",
        input=lambda g, other: g * conjugate(other),
        other=lambda g, input: g * conjugate(input),
    ),
    derivative("neg", input=lambda g: -g),
    derivative("pow", input=_pow_input, exponent=_pow_exponent),
    derivative(
        "remainder",
        input=lambda g: g,
        other=lambda g, input, other: -g * floor_divide(input, other),
    ),
    derivative("sign", input=zero),
    derivative("square", input=lambda g, input: g * (input * 2)._conj()),
    derivative("sub", input=lambda g: g, other=lambda g: -g),
    derivative(
        "div",
        input=lambda g, other: g / conjugate(other),
        other=lambda g, input, other: -g * ((input / other) / other)._conj(),
    ),
]


TANGENTS = [
    # arithmetic
    tangent("add", input=lambda t: t, other=lambda t: t),
    tangent("sub", input=lambda t: t, other=lambda t: -t),
    tangent("mul", input=lambda t, other: t * other, other=lambda t, input: t * input),
    tangent(
        "div",
        input=lambda t, other: t / other,
        other=lambda t, other, result: -t * (result / other),
    ),
    tangent("neg", input=lambda t: -t),
    tangent("square", input=lambda t, input: t * (input * 2)),
    tangent("abs", input=_abs_tangent),
    linear("conj_physical", "input"),
    *holomorphic("pow"),
]
