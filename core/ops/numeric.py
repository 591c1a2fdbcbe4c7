"""Functions of the representation of numbers, and small compounds of elementary functions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..device.dtypes import (
    BOOL,
    COMPLEX,
    FLOATING,
    INTEGER,
    Number,
    bfloat16,
    finfo,
    float16,
    float32,
    int16,
    int32,
    int64,
)
from ..device.scalars import wrapped
from ..dispatch.op_registry import Spec, composite, handle, primitive, primitive_tuple
from ..dispatch.out_dtypes import exact_out
from ..tensor.predicates import is_tensor
from . import results
from .arithmetic.division import div, floor_divide
from .arithmetic.pointwise import abs, add, mul, neg, sub
from .bitwise import bitwise_or, logical_and, logical_or
from .clamp import maximum, minimum
from .comparison import eq, ge, gt, isinf, isnan, lt, ne
from .copying import copy
from .elementary.circular import atan2, sin
from .elementary.exponential import exp, exp2, log, log1p, sqrt
from .masking import where
from .rules import (
    are_alike,
    cast,
    check_tensor,
    elementwise,
    rounded_once,
    that_broadcast,
    to_floating,
)

if TYPE_CHECKING:
    from ..tensor.tensor import Tensor

__all__ = [
    "angle",
    "copysign",
    "deg2rad",
    "frexp",
    "gcd",
    "heaviside",
    "hypot",
    "lcm",
    "ldexp",
    "logaddexp",
    "logaddexp2",
    "nan_to_num",
    "nextafter",
    "rad2deg",
    "signbit",
    "sinc",
    "xlogy",
]

_COMPLEX = handle("complex")
_FULL = handle("fill_new")
_IMAG = handle("imag")
_REAL = handle("real")


@primitive("input, other", pointwise=True, inplace=True)
def copysign(input: Tensor | Number, other: Tensor | Number) -> Spec:
    """Return the magnitude of `input` with the sign of `other`, which zeros have too.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.copysign(tp.tensor([1.0, 2.0]), tp.tensor([-0.0, 3.0]))
    tensor([-1.,  2.])
    """
    return elementwise("copysign", input, other, floating=True, without=(COMPLEX,))


@composite()
def signbit(input: Tensor) -> Tensor:
    """Return where the sign bit of an element is set, as it is of ``-0.0``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.signbit(tp.tensor([-1.0, -0.0, 0.0]))
    tensor([ True,  True, False])
    """
    check_tensor(input, "signbit")
    if input.dtype.category == COMPLEX:
        raise NotImplementedError("signbit() is not implemented for complex tensors")
    if input.dtype.category == BOOL:
        return ne(input, input)  # an order of bool and numbers would be that of int64
    return lt(copysign(1, input) if input.dtype.category == FLOATING else input, 0)


def _canonical_nextafter(input: Any, other: Any) -> tuple[Any, ...]:
    spec = elementwise("nextafter", input, other, without=(BOOL, INTEGER, COMPLEX))
    return tuple(
        [
            value if is_tensor(value) else _FULL.call((), value, spec.key.dtype, spec.key.device)
            for value in spec.values
        ]
    )


@composite(rule=_canonical_nextafter, elementwise=True, inplace=True)
def nextafter(input: Tensor, other: Tensor) -> Tensor:
    """Return the next number that the dtype can represent after `input` towards `other`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.nextafter(tp.tensor([1.0]), tp.tensor([2.0])) - 1
    tensor([1.1921e-07])
    """
    dtype = input.dtype
    integer = {2: int16, 4: int32, 8: int64}[dtype.itemsize]
    limits = finfo(dtype)
    away = eq(gt(other, input), gt(input, 0))  # from zero: the bits count up
    bits = add(input.contiguous().view(integer), where(away, 1, -1).to(integer))
    beside_zero = copysign(limits.tiny * limits.eps, other)  # the smallest number there is
    moved = where(eq(input, 0), beside_zero, bits.view(dtype))
    return where(
        eq(input, other),
        other,
        where(ne(input, input), input, where(ne(other, other), other, moved)),
    )


@primitive_tuple("input", results.frexp, method=True)
def frexp(input: Tensor) -> Spec:
    """Return mantissa and exponent such that ``input = mantissa * 2 ** exponent``.

    Returns
    -------
    mantissa : Tensor
        Of magnitude in [0.5, 1), or 0.
    exponent : Tensor
        Of int32.

    Examples
    --------
    >>> import tensorplug as tp
    >>> mantissa, exponent = tp.frexp(tp.tensor([8.0, -3.0]))
    >>> mantissa
    tensor([ 0.5000, -0.7500])
    """
    check_tensor(input, "frexp")
    if input.dtype.category != FLOATING:
        raise RuntimeError(
            f"torch.frexp() only supports floating-point dtypes, got {input.dtype.name}; convert it"
        )
    shape = input._shape
    return Spec((input,), outputs=((shape, input.dtype), (shape, int32)))


@composite(inplace=True)
def ldexp(input: Tensor, other: Tensor) -> Tensor:
    """Return ``input * 2 ** other``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ldexp(tp.tensor([1.0]), tp.tensor([1, 2, 3]))
    tensor([2., 4., 8.])
    """
    check_tensor(other, "ldexp", "other")
    given: Any = input
    dtype = given.dtype if is_tensor(given) else other.dtype
    if dtype.category < FLOATING or other.dtype.category >= FLOATING:
        return mul(input, exp2(other))
    wide = float32 if dtype.itemsize == 2 else dtype
    return cast(mul(cast(input, wide), exp2(cast(other, wide.to_real()))), dtype)


def _canonical_hypot(input: Any, other: Any) -> tuple[Any, ...]:
    check_tensor(input, "hypot")
    check_tensor(other, "hypot", "other")
    if are_alike(input, other):
        return input, other
    return elementwise("hypot", input, other, without=(BOOL, INTEGER, COMPLEX)).values


@composite(rule=_canonical_hypot, elementwise=True, inplace=True)
def hypot(input: Tensor, other: Tensor) -> Tensor:
    """Return ``sqrt(input**2 + other**2)`` without overflow in between.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.hypot(tp.tensor([3.0]), tp.tensor([4.0]))
    tensor([5.])
    """
    if input._key.dtype.itemsize == 2:  # rounded once, as kernels do it
        return rounded_once(hypot, input.dtype, input, other)
    first, second = abs(input), abs(other)
    large, small = maximum(first, second), minimum(first, second)
    ratio = div(small, where(eq(large, 0), 1, large))
    result = mul(large, sqrt(add(mul(ratio, ratio), 1)))
    return where(bitwise_or(eq(first, math.inf), eq(second, math.inf)), math.inf, result)


@composite(inplace=True)
def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """Return 0 where an element is negative or nan, 1 where it is positive, else one of `values`.

    Raises
    ------
    RuntimeError
        If the dtypes differ, or are complex.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.heaviside(tp.tensor([-1.5, 0.0, 2.0]), tp.tensor([0.5]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    check_tensor(input, "heaviside")
    check_tensor(values, "heaviside", "values")
    if COMPLEX in (input.dtype.category, values.dtype.category):
        raise RuntimeError(
            "heaviside is not yet implemented for complex tensors. Got "
            f"{input.dtype.name} and {values.dtype.name}; give it real ones"
        )
    if input.dtype is not values.dtype:
        raise RuntimeError(
            "heaviside is not yet implemented for tensors with different dtypes. Got "
            f"{input.dtype.name} and {values.dtype.name}; convert one of them with .to()"
        )
    return where(eq(input, 0), values, cast(gt(input, 0), input.dtype))


@composite(inplace=True)
def nan_to_num(
    input: Tensor,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Tensor:
    """Return `input` with nan and infinities replaced by numbers.

    Parameters
    ----------
    input : Tensor
        Integers and bool are returned as they are, in new memory.
    nan : float, optional
        What replaces nan; by default 0.
    posinf, neginf : float, optional
        What replaces the infinities; by default the dtype's largest and smallest number.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.nan_to_num(tp.tensor([1.0, float("nan"), float("inf")]), posinf=9.0)
    tensor([1., 0., 9.])
    """
    check_tensor(input, "nan_to_num")
    dtype = input.dtype
    if dtype.category <= INTEGER:
        return copy(input, input)
    if dtype.category == COMPLEX:
        parts = [nan_to_num(part.call(input), nan, posinf, neginf) for part in (_REAL, _IMAG)]
        return _COMPLEX.call(*parts)
    limits = finfo(dtype)
    result = where(ne(input, input), wrapped(0.0 if nan is None else nan, dtype), input)
    most = limits.max if posinf is None else wrapped(posinf, dtype)
    result = where(eq(input, math.inf), most, result)
    least = limits.min if neginf is None else wrapped(neginf, dtype)
    return where(eq(input, -math.inf), least, result)


@composite(inplace=True)
def deg2rad(input: Tensor) -> Tensor:
    """Return angles in degrees converted to radians.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.deg2rad(tp.tensor([180.0, 90.0]))
    tensor([3.1416, 1.5708])
    """
    _refuse_complex(input, "deg2rad")
    return mul(input, math.pi / 180)


@composite(inplace=True)
def rad2deg(input: Tensor) -> Tensor:
    """Return angles in radians converted to degrees.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.rad2deg(tp.tensor([3.1416, 1.5708]))
    tensor([180.0004,  90.0002])
    """
    _refuse_complex(input, "rad2deg")
    return mul(input, 180 / math.pi)


def _refuse_complex(input: Tensor, name: str) -> None:
    check_tensor(input, name)
    if input.dtype.category == COMPLEX:
        raise RuntimeError(f"{name}() is not supported on complex tensors")


@composite()
def angle(input: Tensor) -> Tensor:
    """Return the angle in radians of each element: of real ones 0, pi of negative ones, nan of nan.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.angle(tp.tensor([1j, -1 + 0j])), tp.angle(tp.tensor([-2.0, 2.0]))
    (tensor([1.5708, 3.1416]), tensor([3.1416, 0.0000]))
    """
    check_tensor(input, "angle")
    if input.dtype.category == COMPLEX:
        return atan2(_IMAG.call(input), _REAL.call(input))
    input = cast(input, to_floating(input.dtype))
    # Of the input itself only nan shows.
    return where(ne(input, input), input, where(lt(input, 0), math.pi, copy(input, 0)))


@composite(inplace=True)
def sinc(input: Tensor) -> Tensor:
    """Return ``sin(pi * x) / (pi * x)``, which is 1 at 0.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.sinc(tp.tensor([0.0, 0.5, 1.5]))
    tensor([ 1.0000,  0.6366, -0.2122])
    """
    check_tensor(input, "sinc")
    dtype = to_floating(input.dtype)
    scaled = mul(_wide(input), math.pi)
    zero = eq(scaled, 0)
    return cast(where(zero, 1, div(sin(scaled), where(zero, 1, scaled))), dtype)


def _wide(input: Tensor) -> Tensor:
    """Return half precision as float32, for compounds in which its errors would add up."""
    return cast(input, float32) if input.dtype in (float16, bfloat16) else input


def _canonical_logaddexp(input: Any, other: Any) -> tuple[Any, ...]:
    check_tensor(input, "logaddexp")
    check_tensor(other, "logaddexp", "other")
    if are_alike(input, other):
        return input, other
    return elementwise("logaddexp", input, other, without=(BOOL, INTEGER)).values


@composite(rule=_canonical_logaddexp, elementwise=True)
def logaddexp(input: Tensor, other: Tensor) -> Tensor:
    """Return ``log(exp(input) + exp(other))`` without overflow in between.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.logaddexp(tp.tensor([-1000.0]), tp.tensor([-1000.0]))
    tensor([-999.3068])
    """
    first, second = input, other
    if first.dtype.category == COMPLEX:
        larger = ge(_REAL.call(first), _REAL.call(second))
        high, low = where(larger, first, second), where(larger, second, first)
        top, bottom = _REAL.call(high), _REAL.call(low)
        # Both real parts may be the same infinity, whose difference is nan; two zeros make a zero.
        alike = logical_and(isinf(top), eq(top, bottom))
        shift = where(alike, 0, high)
        found = add(shift, log(add(exp(sub(low, shift)), where(alike, exp(high), 1))))
        found = where(logical_and(alike, lt(top, 0)), low, found)
        # exp(-inf + nan j) is zero, which would hide the nan.
        return where(logical_or(isnan(first), isnan(second)), complex(math.nan, math.nan), found)
    dtype, first, second = first.dtype, _wide(first), _wide(second)
    large = maximum(first, second)
    sum_of_both = add(large, log1p(exp(neg(abs(sub(first, second))))))
    # Both may be the same infinity, whose difference is nan.
    return cast(where(isinf(large), large, sum_of_both), dtype)


def _canonical_logaddexp2(input: Any, other: Any) -> tuple[Any, Any]:
    check_tensor(input, "logaddexp2")
    check_tensor(other, "logaddexp2", "other")
    return that_broadcast(input, other)


@composite(rule=_canonical_logaddexp2)
def logaddexp2(input: Tensor, other: Tensor) -> Tensor:
    """Return ``log2(2**input + 2**other)`` without overflow in between.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.logaddexp2(tp.tensor([3.0]), tp.tensor([3.0]))
    tensor([4.])
    """
    first, second = elementwise("logaddexp2", input, other, without=(BOOL, INTEGER, COMPLEX)).values
    dtype, first, second = first.dtype, _wide(first), _wide(second)
    large = maximum(first, second)
    ratio = exp2(neg(abs(sub(first, second))))
    sum_of_both = add(large, mul(log1p(ratio), 1 / math.log(2)))
    return cast(where(isinf(large), large, sum_of_both), dtype)


@composite(rule=that_broadcast, inplace=True)
def xlogy(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Return ``input * log(other)``, 0 where `input` is 0, nan where `other` is nan.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.xlogy(tp.tensor([0.0, 2.0]), tp.tensor([0.0, 1.0]))
    tensor([0., 0.])
    """
    return times_log("xlogy", input, other, log)


def times_log(name: str, input: Tensor | Number, other: Tensor | Number, logarithm: Any) -> Tensor:
    """Return ``input * logarithm(other)`` with the limit 0 where `input` is 0."""
    spec = elementwise(name, input, other, floating=True, without=(COMPLEX,))
    first, second = spec.values
    if not is_tensor(second):
        second = copy(first, second)
    if not is_tensor(first):
        first = copy(second, first)
    product = mul(first, logarithm(second))
    return where(ne(second, second), second, where(eq(first, 0), 0, product))


@primitive("input, other", pointwise=True, inplace=True)
def gcd(input: Tensor, other: Tensor) -> Spec:
    """Return the greatest common divisor of integers; of 0 and 0 it is 0.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.gcd(tp.tensor([12, -9]), tp.tensor([8, 6]))
    tensor([4, 3])
    """
    return elementwise("gcd", input, other, without=(BOOL, FLOATING, COMPLEX))


def _canonical_lcm(input: Any, other: Any) -> tuple[Any, ...]:
    check_tensor(input, "lcm")
    check_tensor(other, "lcm", "other")
    return elementwise("lcm", input, other, without=(BOOL, FLOATING, COMPLEX)).values


@composite(rule=_canonical_lcm, elementwise=True, inplace=True)
def lcm(input: Tensor, other: Tensor) -> Tensor:
    """Return the least common multiple of integers; where either is 0 it is 0.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.lcm(tp.tensor([4, 0]), tp.tensor([6, 5]))
    tensor([12,  0])
    """
    divisor = gcd(input, other)
    return mul(floor_divide(abs(input), where(eq(divisor, 0), 1, divisor)), abs(other))


exact_out(heaviside, nan_to_num)
exact_out(frexp, said="torch.frexp() expects {output} to have dtype {words[0]} but got {words[1]}")
exact_out(signbit, said="{name} does not support non-boolean outputs. Got one of {1.name}")
