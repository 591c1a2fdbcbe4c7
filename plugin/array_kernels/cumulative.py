"""Kernels that go along one dimension."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tensorplug.core.device.dtypes import COMPLEXES, bfloat16, float16

from ..tables import KernelTable
from .namespace import ArrayNamespace


def scan(xp: Any, combine: Callable[[Any, Any], Any], input: Any, dim: int) -> Any:
    """Return the running results of an associative function, in log2(n) whole-array steps.

    W. D. Hillis and G. L. Steele, "Data parallel algorithms", CACM 29 (1986). A backend whose
    library accumulates natively registers that instead.
    """
    array = xp.array(input, order="C", copy=True)
    if array.ndim == 0:
        return array
    rows = xp.moveaxis(array, dim, 0)
    step = 1
    while step < rows.shape[0]:
        rows[step:] = combine(rows[:-step], rows[step:])
        step *= 2
    return array


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    xp = namespace.xp
    halves = (float16, bfloat16)
    rows = xp.ascontiguousarray  # results lie row by row, so that any view of them can be made

    @table.kernel()
    def cumsum(input: Any, dim: int) -> Any:
        if not input.ndim:
            return xp.array(input, copy=True)
        return xp.cumsum(rows(input), axis=dim, dtype=input.dtype)

    @table.kernel()
    def cumprod(input: Any, dim: int) -> Any:
        if not input.ndim:
            return xp.array(input, copy=True)
        return xp.cumprod(rows(input), axis=dim, dtype=input.dtype)

    def extremes(better: Any, input: Any, dim: int) -> tuple[Any, Any]:
        """Return the running extremes and where each was last met."""
        if not input.ndim:
            return xp.array(input, copy=True), xp.zeros((), "int64")
        values = scan(xp, better, input, dim)
        met = (input == values) | (input != input)
        shape = [1] * input.ndim
        shape[dim] = -1
        indices = xp.arange(input.shape[dim]).reshape(shape)
        indices = xp.where(met, indices, xp.zeros_like(indices))
        return values, scan(xp, xp.maximum, indices, dim)

    @table.kernel()
    def cummax(input: Any, dim: int) -> tuple[Any, Any]:
        return extremes(xp.maximum, input, dim)

    @table.kernel()
    def cummin(input: Any, dim: int) -> tuple[Any, Any]:
        return extremes(xp.minimum, input, dim)

    @table.kernel()
    def logcumsumexp(input: Any, dim: int) -> Any:
        return scan(xp, xp.logaddexp, input, dim)

    @table.kernel("logcumsumexp", dtypes=COMPLEXES)
    def logcumsumexp_complex(input: Any, dim: int) -> Any:
        # The first element is combined with none before it: what is not a number is so in both parts, and the
        # logarithm of zero has no angle.
        nan = xp.asarray(complex(math.nan, math.nan), input.dtype)
        zero = xp.asarray(complex(-math.inf, 0.0), input.dtype)
        terms = xp.where(input.real == -math.inf, zero, input)
        return scan(xp, logaddexp_complex, xp.where(xp.isnan(input), nan, terms), dim)

    def logaddexp_complex(a: Any, b: Any) -> Any:
        """Return log(exp(a) + exp(b)) with the term of the larger real part taken out of both."""
        larger = a.real >= b.real
        high, low = xp.where(larger, a, b), xp.where(larger, b, a)
        found = high + xp.log(xp.exp(low - high) + 1)
        # Both real parts may be the same infinity, whose difference is nan; two zeros make a zero.
        infinite = xp.where(high.real < 0, low, xp.log(xp.exp(a) + xp.exp(b)))
        found = xp.where(xp.isinf(high.real) & (high.real == low.real), infinite, found)
        # exp(-inf + nan j) is zero, which would hide the nan.
        return xp.where(xp.isnan(a) | xp.isnan(b), complex(math.nan, math.nan), found)

    for function in (cumsum, cumprod, logcumsumexp):
        table.add(function.__name__, namespace.through_float32(function), dtypes=halves)
    for running in (cummax, cummin):
        table.add(running.__name__, namespace.through_float32(running), dtypes=(bfloat16,))
