"""Python numbers as a dtype holds them: converted as C does, refused where it cannot hold them, wrapped."""

from __future__ import annotations

import functools
import math
from typing import Any

from .dtypes import (
    BOOL,
    COMPLEX,
    FLOATING,
    INTEGER,
    DType,
    Number,
    finfo,
    float32,
    iinfo,
    scalar_type,
    wrap_integer,
)

__all__ = ["Real", "coefficient", "fitting", "held", "loosely", "rounded", "wrapped"]

#: A real number that an op takes as it is given; what a parameter declared as ``float`` gets is a float.
Real = float


def fitting(value: Number, dtype: DType) -> Any:
    """Return `value` as a number that `dtype` holds, converted as C does.

    Raises
    ------
    RuntimeError
        If it is out of range. A negative int wraps around in an unsigned dtype, a negative float does not.
    OverflowError
        If it is an int of more than 64 bits.
    """
    category = dtype.category
    if category == FLOATING and type(value) is float and -60000 < value < 60000:
        return value
    if isinstance(value, int):
        _check_width(value)
    if category == BOOL:
        return bool(value)
    if category == COMPLEX:
        for part in (value.real, value.imag):
            if abs(part) > _largest(dtype) and math.isfinite(part):
                raise _overflow(value, dtype)
        return value
    if isinstance(value, complex):
        if value.imag:
            raise _overflow(value, dtype)
        value = value.real
    if category == INTEGER:
        if isinstance(value, float) and not math.isfinite(value):
            raise _overflow(value, dtype)
        limit = _largest(dtype)
        least = -limit - 1 if dtype.is_signed else 0 if isinstance(value, float) else -limit
        if not least <= value <= limit:
            raise _overflow(value, dtype)
        return wrap_integer(int(value), dtype)
    real = float(value)
    if abs(real) > _largest(dtype) and math.isfinite(real):
        raise _overflow(value, dtype)
    return real


def coefficient(value: Number, dtype: DType) -> Any:
    """Return a factor of elements, in the dtype that they are computed in: half precision in float32."""
    return fitting(value, float32 if dtype.is_half else dtype)


def loosely(value: Number, dtype: DType) -> Any:
    """Return a number to be converted by way of float32: beyond half precision it is infinite."""
    return wrapped(value, dtype) if dtype.is_half else value


def held(value: float, dtype: DType) -> bool:
    """Return whether half precision has a number as it is, without rounding."""
    return rounded(value, dtype) == value or value != value


def rounded(value: float, dtype: DType) -> float:
    """Return the nearest number of half precision, of two the even one."""
    # Zeros of both signs are one key.
    return _rounded(value, dtype) if value and math.isfinite(value) else value


@functools.lru_cache(4096)
def _rounded(value: float, dtype: DType) -> float:
    limits = finfo(dtype)
    if abs(value) >= 2 * limits.max:
        return math.copysign(math.inf, value)
    # In units of the last place; those of the smallest normal number are the smallest there are.
    place = math.frexp(max(abs(value), limits.tiny))[1] + math.frexp(limits.eps)[1] - 2
    nearest = math.ldexp(round(math.ldexp(value, -place)), place)
    return math.copysign(nearest if abs(nearest) <= limits.max else math.inf, value)


def held_bound(bound: Any, dtype: DType) -> Any:
    """Return a bound; a number is what elements are compared with, in half precision as that rounds it.

    Raises
    ------
    RuntimeError
        If it is out of range.
    """
    if not isinstance(bound, (int, float)):
        return bound
    number = fitting(bound, dtype)
    return rounded(number, dtype) if dtype.is_half else bound


def wrapped(value: Number, dtype: DType) -> Any:
    """Return an operand of arithmetic, which wraps around in integers and is infinite beyond floats.

    Raises
    ------
    OverflowError
        If it is an int of more than 64 bits.
    """
    category = dtype.category
    if isinstance(value, int):
        _check_width(value)
        if category == INTEGER:
            return value if -128 <= value <= 127 and dtype.is_signed else wrap_integer(value, dtype)
    if category >= FLOATING and not isinstance(value, complex) and abs(value) > _largest(dtype):
        return math.copysign(math.inf, value)
    if category == COMPLEX and isinstance(value, complex):
        real = dtype.to_real()
        return complex(wrapped(value.real, real), wrapped(value.imag, real))
    return value


def _check_width(value: int) -> None:
    if not -(1 << 63) <= value < 1 << 64:
        raise OverflowError(f"int too big to convert: {value} has more than 64 bits")


@functools.cache
def _largest(dtype: DType) -> Any:
    """Return the largest number of a dtype, of a complex one that of its parts."""
    return (iinfo(dtype) if dtype.category == INTEGER else finfo(dtype)).max


def _c_name(dtype: DType) -> str:
    """Return what a dtype is called in torch's message, by which people search."""
    if dtype.category == INTEGER:
        return f"{dtype.name}_t"
    return {"float32": "float", "float64": "double"}.get(dtype.name, scalar_type(dtype))


def _overflow(value: Number, dtype: DType) -> RuntimeError:
    return RuntimeError(
        f"value cannot be converted to type {_c_name(dtype)} without overflow, got {value!r}"
    )
