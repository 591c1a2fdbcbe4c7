"""Attention, by oneDNN where it is installed."""

from __future__ import annotations

from tensorplug.plugin import KernelTable, dtype_named

from ..library import onednn


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    if onednn is None:
        return
    from .. import attention

    name = "scaled_dot_product_efficient_attention"
    dtypes = [dtype_named("float32")]
    table.add(name, attention.attention, dtypes=dtypes)
    table.add(f"{name}_backward", attention.attention_backward, dtypes=dtypes)
