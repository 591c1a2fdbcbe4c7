"""Kernels that fill new arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorplug.plugin import ALL_DTYPES, DType, KernelTable, Number, Shape

from .. import copying, creation, pointwise
from .._dtypes import COMPLEX, NATIVES, SINGLE_AND_DOUBLE, WHOLE, are_exact
from ..below import below
from ..halves import HALVES

_LONG, _DOUBLE = np.dtype(np.int64), np.dtype(np.float64)


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    arange = below("arange_new")

    @table.kernel()
    def fill_new(shape: Shape, value: Number, dtype: DType) -> Any:
        return pointwise.fill_new(tuple(shape), value, NATIVES[dtype])

    @table.kernel("fill_new", dtypes=COMPLEX)
    def fill_complex(shape: Shape, value: Number, dtype: DType) -> Any:
        if value and (type(value) is float or are_exact(value)):  # else NumPy makes the element
            value = complex(value)
        return pointwise.fill_new(tuple(shape), value, NATIVES[dtype])

    @table.kernel(dtypes=[dtype for dtype in ALL_DTYPES if dtype not in HALVES])
    def arange_new(start: Number, step: Number, count: int, dtype: DType) -> Any:
        return copying.arange(
            start, step, count, NATIVES[dtype], lambda: arange(start, step, count, dtype)
        )

    @table.kernel("arange_new", dtypes=HALVES)
    def arange_rounded(start: Number, step: Number, count: int, dtype: DType) -> Any:
        wide = _LONG if type(start) is int and type(step) is int else _DOUBLE
        made = copying.arange(start, step, count, wide, lambda: arange(start, step, count, dtype))
        return pointwise.cast(made, NATIVES[dtype])

    @table.kernel(dtypes=SINGLE_AND_DOUBLE)
    def linspace_new(start: float, end: float, count: int, dtype: DType, *_: Any) -> Any:
        return creation.linspace(start, end, count, NATIVES[dtype])

    @table.kernel("linspace_new", dtypes=(*HALVES, *WHOLE))
    def linspace_rounded(start: float, end: float, count: int, dtype: DType, *_: Any) -> Any:
        return pointwise.cast(creation.linspace(start, end, count, _DOUBLE), NATIVES[dtype])

    @table.kernel("linspace_new", dtypes=COMPLEX)
    def linspace_complex(start: Any, end: Any, count: int, dtype: DType, *_: Any) -> Any:
        result = pointwise.cast(
            creation.linspace(start.real, end.real, count, _DOUBLE), NATIVES[dtype]
        )
        if start.imag or end.imag:
            result.imag = creation.linspace(start.imag, end.imag, count, _DOUBLE)
        return result

    @table.kernel(dtypes=ALL_DTYPES)
    def eye_new(rows: int, columns: int, dtype: DType, *_: Any) -> Any:
        return creation.eye(rows, columns, NATIVES[dtype])
