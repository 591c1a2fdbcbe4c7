"""Kernels that go along one dimension."""

from __future__ import annotations

from tensorplug.plugin import KernelTable, dtype_named

from .. import cumulative
from .._dtypes import FLOATS, NUMBERED, SINGLE_AND_DOUBLE


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    table.add("cumsum", cumulative.cumsum, dtypes=(*FLOATS, dtype_named("int64")))
    table.add("cumprod", cumulative.cumprod, dtypes=(*FLOATS, dtype_named("int64")))
    table.add("cumprod_backward", cumulative.cumprod_backward, dtypes=SINGLE_AND_DOUBLE)
    table.add("cummax", cumulative.cummax, dtypes=NUMBERED)
    table.add("cummin", cumulative.cummin, dtypes=NUMBERED)
    table.add("logcumsumexp", cumulative.logcumsumexp, dtypes=FLOATS)
