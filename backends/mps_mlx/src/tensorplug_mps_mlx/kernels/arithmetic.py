"""Kernels of arithmetic of elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorplug.plugin import ArrayApiBackend

from .._mlx import mx
from ..dtypes import BOOL, COMPLEX, FLOATS, HALVES, INTEGERS
from .halves import through_float32


def is_negative(array: Any) -> Any:
    """Return where the sign of floating-point numbers is set, that of zeros and NaN too."""
    return mx.view(array, {4: mx.int32, 2: mx.int16}[array.itemsize]) < 0


def _checked(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a division of integers that refuses to divide by zero, for which it has to be evaluated."""

    def kernel(input: Any, other: Any) -> Any:
        if other.size and input.size and not mx.all(other != 0).item():
            raise RuntimeError("ZeroDivisionError")
        return function(input, other)

    return kernel


# --- of floating-point numbers ------------------------------------------------------------------


def fmod(input: Any, other: Any) -> Any:
    """Return the remainder with the sign of the dividend."""
    rest = mx.remainder(mx.abs(input), mx.abs(other))
    return mx.where(is_negative(mx.broadcast_to(input, rest.shape)), -rest, rest)


def remainder(input: Any, other: Any) -> Any:
    """Return the remainder with the sign of the divisor."""
    rest = fmod(input, other)
    crosses = mx.logical_and(rest != 0, (rest < 0) != (other < 0))
    zero = mx.where(is_negative(mx.broadcast_to(other, rest.shape)), -0.0, 0.0).astype(rest.dtype)
    return mx.where(rest == 0, zero, mx.where(crosses, rest + other, rest))


def floor_divide(input: Any, other: Any) -> Any:
    """Return the quotient rounded down, as NumPy's ``npy_divmod`` finds it without an error of rounding."""
    rest = fmod(input, other)
    whole = (input - rest) / other
    crosses = mx.logical_and(rest != 0, (rest < 0) != (other < 0))
    whole = mx.where(crosses, whole - 1, whole)
    down = mx.floor(whole)
    down = mx.where(whole - down > 0.5, down + 1, down)
    quotient = input / other
    zero = mx.where(is_negative(quotient), -0.0, 0.0).astype(quotient.dtype)
    return mx.where(other == 0, quotient, mx.where(whole == 0, zero, down))


# --- of integers ----------------------------------------------------------------------------------


def _whole_remainder(input: Any, other: Any) -> Any:
    return mx.remainder(input, other)


def _whole_fmod(input: Any, other: Any) -> Any:
    rest = mx.remainder(input, other)
    return mx.where(mx.logical_and(rest != 0, (input < 0) != (other < 0)), rest - other, rest)


def _whole_floor_divide(input: Any, other: Any) -> Any:
    return mx.floor_divide(input - mx.remainder(input, other), other)


def _whole_power(input: Any, exponent: Any) -> Any:
    one = mx.array(1, dtype=input.dtype)
    negative = exponent < 0
    # A reciprocal rounds to zero, except of 1 and -1.
    odd = mx.bitwise_and(exponent, one)
    unit = mx.where(input == 1, one, mx.where(input == -one, one - 2 * odd, 0 * one))
    whole = mx.power(input, mx.where(negative, 0 * one, exponent))
    return mx.where(negative, unit.astype(input.dtype), whole).astype(input.dtype)


def build(plugin: ArrayApiBackend) -> None:
    """Add these kernels to the plugin."""
    single = [dtype for dtype in FLOATS if dtype not in HALVES]
    for function in (fmod, remainder, floor_divide):
        plugin.kernel(dtypes=single)(function)
        plugin.kernel(function.__name__, dtypes=HALVES)(through_float32(function))
    for name, function in (
        ("fmod", _whole_fmod),
        ("remainder", _whole_remainder),
        ("floor_divide", _whole_floor_divide),
    ):
        plugin.kernel(name, dtypes=INTEGERS)(_checked(function))
    plugin.kernel("pow", dtypes=INTEGERS)(_whole_power)
    plugin.kernel("pow", dtypes=(BOOL,))(
        lambda input, exponent: mx.logical_or(input, mx.logical_not(exponent))
    )
    plugin.kernel("abs", dtypes=(COMPLEX,))(mx.abs)
    plugin.kernel("add", dtypes=(BOOL,))(mx.logical_or)
    plugin.kernel("mul", dtypes=(BOOL,))(mx.logical_and)
    plugin.kernel("abs", dtypes=(BOOL,))(lambda input: input)
    for op, function in (
        ("add", mx.add),
        ("sub", mx.subtract),
        ("mul", mx.multiply),
        ("div", mx.divide),
        ("neg", mx.negative),
        ("abs", mx.abs),
    ):
        plugin.kernel(op, dtypes=HALVES)(function)
