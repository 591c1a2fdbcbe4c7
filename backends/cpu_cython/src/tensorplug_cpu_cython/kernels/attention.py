"""Attention, by oneDNN where it is installed."""

from __future__ import annotations

from tensorplug.plugin import KernelTable, dtype_named

from ..library import onednn


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    if onednn is None:
        return
    from .. import attention

    for name in ("attention", "attention_gradient"):
        table.add(name, getattr(attention, name), dtypes=[dtype_named("float32")])
