"""Recurrent cells."""

from __future__ import annotations

from tensorplug.plugin import KernelTable, dtype_named

from .. import rnn


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    dtypes = [dtype_named("float32"), dtype_named("float64")]
    for name in ("lstm_cell", "gru_cell"):
        table.add(name, getattr(rnn, name), dtypes=dtypes)
        table.add(f"{name}_backward", getattr(rnn, f"{name}_gradient"), dtypes=dtypes)
