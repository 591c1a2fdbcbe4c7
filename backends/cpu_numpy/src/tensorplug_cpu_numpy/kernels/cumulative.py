"""Cumulative ops for which NumPy has compiled loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable, dtype_named

Array = np.ndarray[Any, Any]


def build(table: KernelTable) -> None:
    """Add these kernels to `table`, above the shared ones."""
    table.add("cummax", _cummax, priority=1)
    table.add("cummin", _cummin, priority=1)
    for op, running in (
        ("cumsum", np.add),
        ("cumprod", np.multiply),
        ("logcumsumexp", np.logaddexp),
    ):
        names = ("float32", "float64") if op == "logcumsumexp" else ("float32", "complex64")
        dtypes = [dtype_named(name) for name in names]
        table.add(op, _accumulated(running), dtypes=dtypes, priority=1)


def _running(better: np.ufunc, input: Array, dim: int) -> tuple[Any, Any]:
    """Return the running extremes and where each was last met."""
    if input.ndim == 0:
        return input.copy(), np.zeros((), np.int64)
    wide = input.astype(np.float32) if input.dtype.kind == "V" else input  # bfloat16 has no loop
    values = better.accumulate(np.ascontiguousarray(wide), dim)
    met = wide == values
    if wide.dtype.kind == "f":
        met |= np.isnan(wide)
    shape = [1] * input.ndim
    shape[dim] = -1
    indices = np.maximum.accumulate(met * np.arange(input.shape[dim]).reshape(shape), dim)
    return values.astype(input.dtype, copy=False), indices


def _cummax(input: Array, dim: int) -> tuple[Any, Any]:
    return _running(np.maximum, input, dim)


def _cummin(input: Array, dim: int) -> tuple[Any, Any]:
    return _running(np.minimum, input, dim)


def _accumulated(running: np.ufunc) -> Any:
    """Return a kernel that accumulates in double precision, as torch does: errors add up over a row."""

    def kernel(input: Array, dim: int) -> Any:
        if not input.ndim:
            return input.copy()
        wide = np.result_type(input.dtype, np.float64)
        rows = np.ascontiguousarray(input)
        return running.accumulate(rows, dim, dtype=wide).astype(input.dtype, copy=False)

    return kernel
