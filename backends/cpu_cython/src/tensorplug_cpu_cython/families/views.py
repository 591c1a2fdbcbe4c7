"""Kernels that show memory in another way."""

from __future__ import annotations

from tensorplug.plugin import ALL_DTYPES, KernelTable

from .. import views


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    for op in ("basic_index", "diagonal", "expand", "permute", "unfold", "view"):
        table.add(op, getattr(views, op), dtypes=ALL_DTYPES)
