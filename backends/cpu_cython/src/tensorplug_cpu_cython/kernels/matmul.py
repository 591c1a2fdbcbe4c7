"""Matrix products by oneDNN, where it is installed."""

from __future__ import annotations

from tensorplug.plugin import KernelTable, dtype_named

from ..library import onednn


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    if onednn is not None:
        from .. import matmul

        table.add("matmul", matmul.matmul, dtypes=[dtype_named("float32")])
        table.add("matmul", matmul.half_matmul, dtypes=[dtype_named("bfloat16")])
