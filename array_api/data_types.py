"""Functions over dtypes: conversion, promotion, kinds, limits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

from tensorplug.core import Tensor
from tensorplug.core.device import dtypes
from tensorplug.core.device.device import Device
from tensorplug.core.device.dtypes import DType, Number

from .array import Array, wrap
from .promotion import promote

__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

Placement: TypeAlias = Device | str | None

_SIGNED = (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64)
_UNSIGNED = (dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64)
_REAL = (dtypes.float32, dtypes.float64)
_COMPLEX = (dtypes.complex64, dtypes.complex128)

#: The standard's dtypes by the standard's names of their kinds.
KINDS: dict[str, tuple[DType, ...]] = {
    "bool": (dtypes.bool_,),
    "signed integer": _SIGNED,
    "unsigned integer": _UNSIGNED,
    "integral": _SIGNED + _UNSIGNED,
    "real floating": _REAL,
    "complex floating": _COMPLEX,
    "numeric": _SIGNED + _UNSIGNED + _REAL + _COMPLEX,
}

#: Which of our dtypes belong to a kind; ours are more than the standard's.
_CATEGORIES: dict[str, tuple[int, ...]] = {
    "bool": (dtypes.BOOL,),
    "integral": (dtypes.INTEGER,),
    "real floating": (dtypes.FLOATING,),
    "complex floating": (dtypes.COMPLEX,),
    "numeric": (dtypes.INTEGER, dtypes.FLOATING, dtypes.COMPLEX),
}


def astype(x: Tensor, dtype: DType, /, *, copy: bool = True, device: Placement = None) -> Array:
    """Return `x` with another dtype; `x` itself if nothing changes and `copy` is False.

    Raises
    ------
    TypeError
        For complex to real numbers, which would lose the imaginary parts.
    """
    if x.dtype.is_complex and dtype.category in (dtypes.INTEGER, dtypes.FLOATING):
        raise TypeError(
            f"astype(): {x.dtype} to {dtype} would lose the imaginary parts; take real(x) first"
        )
    result = x.to(device=device, dtype=dtype)
    return wrap(result.clone() if copy and result is x else result)


def can_cast(from_: DType | Tensor, to: DType, /) -> bool:
    """Return whether promotion can lead from a dtype, or the one of an array, to another.

    Examples
    --------
    >>> import tensorplug.array_api as xp
    >>> xp.can_cast(xp.int32, xp.int64), xp.can_cast(xp.int64, xp.int32)
    (True, False)
    """
    source = from_.dtype if isinstance(from_, Tensor) else from_
    try:
        return promote(source, to) is to
    except TypeError:
        return False


def isdtype(dtype: DType, kind: DType | str | tuple[DType | str, ...]) -> bool:
    """Return whether a dtype is of a kind, such as ``"real floating"``, or of one of several.

    Raises
    ------
    ValueError
        If there is no kind of that name.

    Examples
    --------
    >>> import tensorplug.array_api as xp
    >>> xp.isdtype(xp.int8, ("signed integer", "bool"))
    True
    """
    if isinstance(kind, tuple):
        return any([isdtype(dtype, one) for one in kind])
    if isinstance(kind, DType):
        return dtype is kind
    if kind not in KINDS:
        raise ValueError(f"isdtype(): unknown kind {kind!r}; known are {', '.join(KINDS)}")
    if kind in _CATEGORIES:
        return dtype.category in _CATEGORIES[kind]
    return dtype.category == dtypes.INTEGER and dtype.is_signed == (kind == "signed integer")


def result_type(*arrays_and_dtypes: Tensor | DType | Number) -> DType:
    """Return the dtype of an operation over arrays, dtypes and numbers.

    Unlike torch's rule, the standard's makes no difference between 0-d arrays and others.

    Raises
    ------
    TypeError
        For uint64 with a signed integer: no integer dtype holds both.
    ValueError
        If there is no array and no dtype.

    Examples
    --------
    >>> import tensorplug.array_api as xp
    >>> xp.result_type(xp.asarray(1), xp.int8, 3)
    tensorplug.int64
    """
    found: list[DType] = []
    numbers: list[Number] = []
    for item in arrays_and_dtypes:
        if isinstance(item, DType):
            found.append(item)
        elif isinstance(item, Tensor):
            found.append(item.dtype)
        else:
            numbers.append(item)
    if not found:
        raise ValueError("result_type(): at least one array or dtype is required")
    result = reduce(promote, found)
    for number in numbers:
        scalar = dtypes.scalar_dtype(number)
        if scalar.category > result.category:
            keep = scalar.is_complex and result.is_floating_point
            result = result.to_complex() if keep else scalar
    return result


@dataclass(frozen=True)
class FloatLimits:
    """What :func:`finfo` returns."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@dataclass(frozen=True)
class IntegerLimits:
    """What :func:`iinfo` returns."""

    bits: int
    max: int
    min: int
    dtype: DType


def finfo(type: DType | Tensor, /) -> FloatLimits:
    """Return the limits of a floating-point dtype, or of the parts of a complex one.

    Examples
    --------
    >>> import tensorplug.array_api as xp
    >>> xp.finfo(xp.complex64).dtype
    tensorplug.float32
    """
    dtype = type.dtype if isinstance(type, Tensor) else type
    limits: Any = dtypes.finfo(dtype)
    return FloatLimits(
        limits.bits, limits.eps, limits.max, limits.min, limits.smallest_normal, dtype.to_real()
    )


def iinfo(type: DType | Tensor, /) -> IntegerLimits:
    """Return the limits of an integer dtype."""
    dtype = type.dtype if isinstance(type, Tensor) else type
    limits = dtypes.iinfo(dtype)
    return IntegerLimits(limits.bits, limits.max, limits.min, dtype)
