"""Kernels that roll and flip."""

from __future__ import annotations

from tensorplug.plugin import ALL_DTYPES, KernelTable

from .. import copying, strided


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    table.add("roll", copying.roll, dtypes=ALL_DTYPES)
    table.add("flip", strided.flip, dtypes=ALL_DTYPES)
