"""Kernels that join arrays."""

from __future__ import annotations

from tensorplug.plugin import ALL_DTYPES, KernelTable

from .. import copying


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    table.add("cat", copying.cat, dtypes=ALL_DTYPES)
    table.add("matrices_along_diagonal", copying.matrices_along_diagonal, dtypes=ALL_DTYPES)
    table.add("stack", copying.stack, dtypes=ALL_DTYPES)
