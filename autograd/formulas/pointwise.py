"""Derivatives of pointwise arithmetic, rounding and selection.

A real function of real input has g * f'(x); a holomorphic one of complex input g * conj(f'(x)),
which is torch's convention of gradients of complex numbers. ``conj`` of a real tensor is itself.
"""

from __future__ import annotations

import cmath
import math
from typing import Any

from tensorplug.core.ops.arithmetic.division import floor_divide, true_divide
from tensorplug.core.ops.arithmetic.pointwise import sgn
from tensorplug.core.ops.arithmetic.powers import power
from tensorplug.core.ops.bitwise import bitwise_and
from tensorplug.core.ops.comparison import eq, ge, gt, le, lt
from tensorplug.core.ops.copying import copy
from tensorplug.core.ops.elementary.exponential import log
from tensorplug.core.ops.elementary.rounding import trunc
from tensorplug.core.ops.masking import where
from tensorplug.core.tensor import Tensor

from ..derivatives import derivative


def zero(g: Any) -> Any:
    """Return zeros like `g`, also where `g` is infinite or nan."""
    return copy(g, 0)


def conjugate(value: Any) -> Any:
    """Return the conjugate of a tensor or number."""
    return value.conj() if isinstance(value, Tensor) else value.conjugate()


def _power_input(g: Any, input: Any, exponent: Any) -> Any:
    if isinstance(exponent, Tensor):
        slope = g * conjugate(exponent * power(input, exponent - 1))
        return where(eq(exponent, 0), 0, slope)
    return g * conjugate(exponent * power(input, exponent - 1)) if exponent else zero(g)


def _power_exponent(g: Any, input: Any, exponent: Any, result: Any) -> Any:
    # The limit of x**y * log(x) for x -> 0 is 0 where the power is defined.
    if isinstance(input, Tensor):
        at_zero = eq(input, 0)
        if not exponent.is_complex():
            at_zero = bitwise_and(at_zero, ge(exponent, 0))
        return where(at_zero, 0, g * conjugate(result * log(input)))
    if input == 0:
        slope = g * conjugate(result * -math.inf)
        return zero(g) if exponent.is_complex() else where(ge(exponent, 0), 0, slope)
    if isinstance(input, complex) or exponent.is_complex():
        return g * conjugate(result * cmath.log(input))
    return g * conjugate(result * (math.log(input) if input > 0 else math.nan))


def _half_of_ties(g: Any, mine: Any, other: Any, beyond: Any) -> Any:
    return where(beyond(other, mine), 0, where(eq(mine, other), g * 0.5, g))


DERIVATIVES = [
    derivative("abs", input=lambda g, input: g * sgn(input)),
    derivative("add", input=lambda g: g, other=lambda g: g),
    derivative("ceil", input=zero),
    derivative(
        "where",
        condition=None,
        input=lambda g, condition: where(condition, g, 0),
        other=lambda g, condition: where(condition, 0, g),
    ),
    derivative(
        "clamp_max",
        input=lambda g, input, max: where(le(input, max), g, 0),
        max=lambda g, input, max: where(gt(input, max), g, 0),
    ),
    derivative(
        "clamp_min",
        input=lambda g, input, min: where(ge(input, min), g, 0),
        min=lambda g, input, min: where(lt(input, min), g, 0),
    ),
    derivative("conj_physical", input=lambda g: g.conj()),
    derivative("floor", input=zero),
    derivative("floor_divide", input=zero, other=zero),
    derivative(
        "fmod",
        input=lambda g: g,
        other=lambda g, input, other: -g * trunc(true_divide(input, other)),
    ),
    derivative(
        "maximum",
        input=lambda g, input, other: _half_of_ties(g, input, other, gt),
        other=lambda g, input, other: _half_of_ties(g, other, input, gt),
    ),
    derivative(
        "minimum",
        input=lambda g, input, other: _half_of_ties(g, input, other, lt),
        other=lambda g, input, other: _half_of_ties(g, other, input, lt),
    ),
    derivative(
        "mul",
        input=lambda g, other: g * conjugate(other),
        other=lambda g, input: g * conjugate(input),
    ),
    derivative("neg", input=lambda g: -g),
    derivative("power", input=_power_input, exponent=_power_exponent),
    derivative(
        "remainder",
        input=lambda g: g,
        other=lambda g, input, other: -g * floor_divide(input, other),
    ),
    derivative("rint", input=zero),
    derivative("sign", input=zero),
    derivative("square", input=lambda g, input: g * (input * 2).conj()),
    derivative("sub", input=lambda g: g, other=lambda g: -g),
    derivative(
        "true_divide",
        input=lambda g, other: g / conjugate(other),
        other=lambda g, input, other: -g * ((input / other) / other).conj(),
    ),
    derivative("trunc", input=zero),
]
