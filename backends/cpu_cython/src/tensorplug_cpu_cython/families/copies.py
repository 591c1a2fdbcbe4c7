"""Kernels that copy whole rows, and those that make sequences of numbers."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import ALL_DTYPES, DType, KernelTable, Number

from .. import copies
from .._dtypes import NATIVES
from ..below import below


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    table.add("cat", copies.cat, dtypes=ALL_DTYPES)
    table.add("stack", copies.stack, dtypes=ALL_DTYPES)
    table.add("roll", copies.roll, dtypes=ALL_DTYPES)
    arange = below("arange_new")

    @table.kernel(dtypes=ALL_DTYPES)
    def tril(input: Any, diagonal: int) -> Any:
        return copies.triangle(input, diagonal, False)

    @table.kernel(dtypes=ALL_DTYPES)
    def triu(input: Any, diagonal: int) -> Any:
        return copies.triangle(input, diagonal, True)

    @table.kernel(dtypes=ALL_DTYPES)
    def arange_new(start: Number, step: Number, count: int, dtype: DType) -> Any:
        return copies.sequence(
            start, step, count, NATIVES[dtype], lambda: arange(start, step, count, dtype)
        )
