"""Kernels that go along one dimension."""

from __future__ import annotations

from tensorplug.plugin import KernelTable, dtype_named

from .. import scans
from .._dtypes import FLOATS, NUMBERED


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    table.add("cumsum", scans.cumsum, dtypes=(*FLOATS, dtype_named("int64")))
    table.add("cumprod", scans.cumprod, dtypes=(*FLOATS, dtype_named("int64")))
    table.add("cummax", scans.cummax, dtypes=NUMBERED)
    table.add("cummin", scans.cummin, dtypes=NUMBERED)
    table.add("logcumsumexp", scans.logcumsumexp, dtypes=FLOATS)
