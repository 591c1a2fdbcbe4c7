"""Kernels that fill new arrays."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import ALL_DTYPES, DType, KernelTable, Number, Shape

from .. import copying, creation, pointwise
from .._dtypes import NATIVES, SINGLE_AND_DOUBLE
from ..below import below


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    arange = below("arange_new")

    @table.kernel()
    def fill_new(shape: Shape, value: Number, dtype: DType) -> Any:
        return pointwise.fill_new(tuple(shape), value, NATIVES[dtype])

    @table.kernel(dtypes=ALL_DTYPES)
    def arange_new(start: Number, step: Number, count: int, dtype: DType) -> Any:
        return copying.arange(
            start, step, count, NATIVES[dtype], lambda: arange(start, step, count, dtype)
        )

    @table.kernel(dtypes=SINGLE_AND_DOUBLE)
    def linspace_new(start: float, end: float, count: int, dtype: DType, *_: Any) -> Any:
        return creation.linspace(start, end, count, NATIVES[dtype])

    @table.kernel(dtypes=ALL_DTYPES)
    def eye_new(rows: int, columns: int, dtype: DType, *_: Any) -> Any:
        return creation.eye(rows, columns, NATIVES[dtype])
