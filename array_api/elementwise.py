"""Functions of one or two numbers, element by element.

Most are an op of core under the standard's name, after the operands got one dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from tensorplug.core import Tensor, ops
from tensorplug.core.device.dtypes import Number

from .array import Array, wrap
from .promotion import align

__all__ = [
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and",
    "bitwise_invert", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "ceil", "clip", "conj", "copysign", "cos", "cosh", "divide", "equal", "exp", "expm1", "floor",
    "floor_divide", "greater", "greater_equal", "hypot", "imag", "isfinite", "isinf", "isnan",
    "less", "less_equal", "log", "log1p", "log2", "log10", "logaddexp", "logical_and",
    "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative",
    "nextafter", "not_equal", "positive", "pow", "real", "reciprocal", "remainder", "round",
    "sign", "signbit", "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh", "trunc",
]  # fmt: skip

Operand: TypeAlias = Tensor | Number


def _unary(op: Callable[..., Any], name: str, what: str) -> Callable[[Tensor], Array]:
    """Return the standard's form of an op of one tensor."""

    def function(x: Tensor, /) -> Array:
        return wrap(op(x))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return {what}, for each element."
    return function


def _binary(op: Callable[..., Any], name: str, what: str) -> Callable[[Operand, Operand], Array]:
    """Return the standard's form of an op of two operands, of which one may be a number."""

    def function(x1: Operand, x2: Operand, /) -> Array:
        return wrap(op(*align(x1, x2)))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return {what}, for each pair of elements after broadcasting."
    return function


def _both_tensors(op: Callable[..., Any]) -> Callable[..., Any]:
    """Return an op that takes tensors alone so that it takes a number, too."""

    def call(a: Any, b: Any) -> Any:
        like = a if isinstance(a, Tensor) else b
        made = [
            item
            if isinstance(item, Tensor)
            else ops.full((), item, dtype=like.dtype, device=like.device)
            for item in (a, b)
        ]
        return op(*made)

    return call


def _clone(x: Any) -> Any:
    return x.clone()


def _expm1(x: Any) -> Any:
    result: Any = ops.expm1(x)
    if not x.dtype.is_complex:
        return result
    # On the real axis and at infinity the standard asks for more than complex arithmetic gives.
    real, imag = x.real, x.imag
    level = imag == 0
    real_part = ops.where(level, ops.expm1(real) + 0, result.real)
    imag_part = ops.where(level, imag, result.imag)
    for infinity, limit in ((-math.inf, -1 + 0j), (math.inf, complex(math.inf, math.nan))):
        there = (real == infinity) & ~ops.isfinite(imag)
        real_part = ops.where(there, limit.real, real_part)
        imag_part = ops.where(there, limit.imag, imag_part)
    return ops.complex(real_part, imag_part)


def _tanh(x: Any) -> Any:
    result: Any = ops.tanh(x)
    if not x.dtype.is_complex:
        return result
    # At infinity the imaginary part is 0 with the sign of x's, not with the one of sin(2 * x.imag).
    real, imag = x.real, x.imag
    there = ops.isinf(real) & ops.isfinite(imag)
    limit = ops.complex(ops.sign(real), ops.copysign(ops.zeros_like(imag), imag))
    return ops.where(there, limit, result)


def _imag(x: Any) -> Any:
    return ops.imag(x) if x.dtype.is_complex else ops.zeros_like(x)


def _round(x: Any) -> Any:
    if x.dtype.is_complex:
        return ops.complex(ops.round(x.real), ops.round(x.imag))
    return ops.round(x)


def _sign(x: Any) -> Any:
    result = ops.sgn(x)
    # torch's sign of NaN is 0, the standard's NaN.
    return ops.where(ops.isnan(x), x, result) if x.dtype.is_floating_point else result


abs = _unary(ops.abs, "abs", "the absolute value")
acos = _unary(ops.acos, "acos", "the inverse cosine")
acosh = _unary(ops.acosh, "acosh", "the inverse hyperbolic cosine")
asin = _unary(ops.asin, "asin", "the inverse sine")
asinh = _unary(ops.asinh, "asinh", "the inverse hyperbolic sine")
atan = _unary(ops.atan, "atan", "the inverse tangent")
atanh = _unary(ops.atanh, "atanh", "the inverse hyperbolic tangent")
bitwise_invert = _unary(ops.bitwise_not, "bitwise_invert", "the number with all bits inverted")
ceil = _unary(ops.ceil, "ceil", "the smallest integer that is not less")
conj = _unary(ops.conj, "conj", "the complex conjugate")
cos = _unary(ops.cos, "cos", "the cosine")
cosh = _unary(ops.cosh, "cosh", "the hyperbolic cosine")
exp = _unary(ops.exp, "exp", "the exponential")
expm1 = _unary(_expm1, "expm1", "the exponential less 1, accurate near 0")
floor = _unary(ops.floor, "floor", "the largest integer that is not greater")
imag = _unary(_imag, "imag", "the imaginary part")
isfinite = _unary(ops.isfinite, "isfinite", "whether it is neither infinite nor NaN")
isinf = _unary(ops.isinf, "isinf", "whether it is infinite")
isnan = _unary(ops.isnan, "isnan", "whether it is NaN")
log = _unary(ops.log, "log", "the natural logarithm")
log1p = _unary(ops.log1p, "log1p", "the natural logarithm of 1 + x, accurate near 0")
log2 = _unary(ops.log2, "log2", "the logarithm to base 2")
log10 = _unary(ops.log10, "log10", "the logarithm to base 10")
logical_not = _unary(ops.logical_not, "logical_not", "whether it is false")
negative = _unary(ops.neg, "negative", "the negative")
positive = _unary(_clone, "positive", "the number itself")
real = _unary(ops.real, "real", "the real part")
reciprocal = _unary(ops.reciprocal, "reciprocal", "1 divided by it")
round = _unary(_round, "round", "the nearest integer, of two the even one")
sign = _unary(_sign, "sign", "the sign; of complex numbers x / abs(x)")
signbit = _unary(ops.signbit, "signbit", "whether its sign bit is set")
sin = _unary(ops.sin, "sin", "the sine")
sinh = _unary(ops.sinh, "sinh", "the hyperbolic sine")
sqrt = _unary(ops.sqrt, "sqrt", "the square root")
square = _unary(ops.square, "square", "the square")
tan = _unary(ops.tan, "tan", "the tangent")
tanh = _unary(_tanh, "tanh", "the hyperbolic tangent")
trunc = _unary(ops.trunc, "trunc", "the nearest integer towards 0")

add = _binary(ops.add, "add", "the sum")
atan2 = _binary(ops.atan2, "atan2", "the angle of the point (x2, x1)")
bitwise_and = _binary(ops.bitwise_and, "bitwise_and", "the bits that both have")
bitwise_left_shift = _binary(
    ops.bitwise_left_shift, "bitwise_left_shift", "x1 shifted left by x2 bits"
)
bitwise_or = _binary(ops.bitwise_or, "bitwise_or", "the bits that either has")
bitwise_right_shift = _binary(
    ops.bitwise_right_shift, "bitwise_right_shift", "x1 shifted right by x2 bits"
)
bitwise_xor = _binary(ops.bitwise_xor, "bitwise_xor", "the bits that one of them has")
copysign = _binary(_both_tensors(ops.copysign), "copysign", "x1 with the sign of x2")
divide = _binary(ops.div, "divide", "the quotient")
equal = _binary(ops.eq, "equal", "whether they are equal")
floor_divide = _binary(ops.floor_divide, "floor_divide", "the quotient rounded down")
greater = _binary(ops.gt, "greater", "whether x1 > x2")
greater_equal = _binary(ops.ge, "greater_equal", "whether x1 >= x2")
hypot = _binary(_both_tensors(ops.hypot), "hypot", "the square root of x1**2 + x2**2")
less = _binary(ops.lt, "less", "whether x1 < x2")
less_equal = _binary(ops.le, "less_equal", "whether x1 <= x2")
logaddexp = _binary(_both_tensors(ops.logaddexp), "logaddexp", "log(exp(x1) + exp(x2))")
logical_and = _binary(_both_tensors(ops.logical_and), "logical_and", "whether both are true")
logical_or = _binary(_both_tensors(ops.logical_or), "logical_or", "whether either is true")
logical_xor = _binary(_both_tensors(ops.logical_xor), "logical_xor", "whether just one is true")
maximum = _binary(_both_tensors(ops.maximum), "maximum", "the greater")
minimum = _binary(_both_tensors(ops.minimum), "minimum", "the lesser")
multiply = _binary(ops.mul, "multiply", "the product")
nextafter = _binary(
    _both_tensors(ops.nextafter), "nextafter", "the number next to x1 in the direction of x2"
)
not_equal = _binary(ops.ne, "not_equal", "whether they differ")
pow = _binary(ops.pow, "pow", "x1 to the power of x2")
remainder = _binary(ops.remainder, "remainder", "the rest of x1 / x2, with the sign of x2")
subtract = _binary(ops.sub, "subtract", "the difference")


def clip(x: Tensor, /, min: Operand | None = None, max: Operand | None = None) -> Array:
    """Return `x` with what is below `min` or above `max` replaced by these.

    Examples
    --------
    >>> import tensorplug.array_api as xp
    >>> xp.clip(xp.asarray([1, 5, 9]), 2, 8)
    Array([2, 5, 8])
    """
    result: Any = x
    if min is not None:
        result = maximum(result, min)
    if max is not None:
        result = minimum(result, max)
    return wrap(_clone(x) if result is x else result.to(x.dtype))
