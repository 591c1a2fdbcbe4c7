"""Kernels that go along one dimension."""

from __future__ import annotations

from tensorplug.plugin import KernelTable, dtype_named

from .. import cumulative
from .._dtypes import COMPLEX, FLOATS, NUMBERED
from ..below import below
from ..halves import add_floats


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    table.add("cumsum", cumulative.cumsum, dtypes=(*FLOATS, *COMPLEX, dtype_named("int64")))
    table.add("cumprod", cumulative.cumprod, dtypes=(*FLOATS, *COMPLEX, dtype_named("int64")))
    add_floats(table, "cumprod_backward", cumulative.cumprod_backward)
    table.add("cummax", cumulative.cummax, dtypes=NUMBERED)
    table.add("cummin", cumulative.cummin, dtypes=NUMBERED)
    table.add("logcumsumexp", cumulative.logcumsumexp, dtypes=FLOATS)
    logarithm = cumulative.complex_logcumsumexp(below("logcumsumexp"))
    table.add("logcumsumexp", logarithm, dtypes=COMPLEX)
