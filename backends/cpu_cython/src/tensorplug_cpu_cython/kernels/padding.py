"""The kernel that pads with a number."""

from __future__ import annotations

from tensorplug.plugin import ALL_DTYPES, KernelTable

from .. import padding


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    table.add("constant_pad_nd", padding.constant_pad_nd, dtypes=ALL_DTYPES)
