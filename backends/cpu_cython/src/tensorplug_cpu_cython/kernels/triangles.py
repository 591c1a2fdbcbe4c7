"""Kernels that keep a triangle of matrices."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import ALL_DTYPES, KernelTable

from .. import copying


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""

    @table.kernel(dtypes=ALL_DTYPES)
    def tril(input: Any, diagonal: int) -> Any:
        return copying.triangle(input, diagonal, False)

    @table.kernel(dtypes=ALL_DTYPES)
    def triu(input: Any, diagonal: int) -> Any:
        return copying.triangle(input, diagonal, True)
