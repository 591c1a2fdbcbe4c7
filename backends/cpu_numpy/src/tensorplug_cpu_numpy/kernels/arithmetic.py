"""Arithmetic where NumPy has a fault, or is slow without need."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable, dtype_named

_PRIORITY = 10


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    # NumPy 2.4 (seen in 2.4.6, x86-64) mixes elements up where it negates a strided array of 4-byte
    # elements in place: np.negative(a, out=a) for a = np.ones((2, 3, 4), "f")[..., 0:1].
    dtypes = (dtype_named("float32"), dtype_named("int32"))
    table.add("neg", negative, dtypes=dtypes, out=True, priority=_PRIORITY)
    floats = (dtype_named("float32"), dtype_named("float64"))
    table.add("pow", power, dtypes=floats, priority=_PRIORITY)
    complexes = (dtype_named("complex64"), dtype_named("complex128"))
    table.add("pow", complex_power, dtypes=complexes, priority=_PRIORITY)
    table.add("neg", complex_negative, dtypes=complexes, out=True, priority=_PRIORITY)
    table.add("add_scaled", add_scaled, dtypes=floats, out=True)


def add_scaled(
    input: np.ndarray[Any, Any],
    other: np.ndarray[Any, Any],
    alpha: float,
    out: np.ndarray[Any, Any] | None = None,
) -> Any:
    """Return ``input + alpha * other``."""
    return np.add(input, np.multiply(other, alpha), out)


def negative(input: np.ndarray[Any, Any], out: np.ndarray[Any, Any] | None = None) -> Any:
    """Return the negative of each element."""
    if out is None:
        return np.negative(input)
    if out.flags.c_contiguous:
        return np.negative(input, out=out)
    out[...] = np.negative(input)
    return out


def power(input: np.ndarray[Any, Any], exponent: np.ndarray[Any, Any]) -> Any:
    """Return powers; NumPy takes 40 times as long for a negative number as for a positive one."""
    if exponent.ndim or exponent % 1:
        return np.power(input, exponent)
    if exponent == 2:
        return input * input
    if exponent == 3:
        return input * input * input
    result = np.power(np.abs(input), exponent)
    return np.copysign(result, input) if exponent % 2 else result


def complex_power(input: np.ndarray[Any, Any], exponent: np.ndarray[Any, Any]) -> Any:
    """Return powers of complex numbers; NumPy takes 15 times as long for squares as for products."""
    if not exponent.ndim and exponent == 2:
        return input * input
    result = np.power(input, exponent)
    strange = np.isnan(np.real(result)) & (np.real(exponent) < 0)
    return _negative_powers(input, result, strange) if strange.any() else result


def _negative_powers(
    input: np.ndarray[Any, Any], result: np.ndarray[Any, Any], strange: np.ndarray[Any, Any]
) -> Any:
    """Return negative powers with those of 0 and of infinities, which NumPy computes by products."""
    limits = np.where(input == 0, complex(np.inf, np.nan), np.where(np.isinf(input), 0, result))
    return np.where(strange & ~np.isnan(input), limits, result).astype(result.dtype)


def complex_negative(input: np.ndarray[Any, Any], out: np.ndarray[Any, Any] | None = None) -> Any:
    """Return the negative of complex numbers; NumPy takes five times as long as for their parts."""
    if out is not None or not input.ndim or not input.flags.c_contiguous:
        return np.negative(input, out=out)
    return np.negative(input.view(input.real.dtype)).view(input.dtype)
