"""Kernels that show memory in another way."""

from __future__ import annotations

from tensorplug.plugin import ALL_DTYPES, KernelTable

from .. import strided
from .._dtypes import COMPLEX, SINGLE_AND_DOUBLE
from ..below import below


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    for op in ("basic_index", "diag_embed", "diagonal", "expand", "permute", "unfold", "view"):
        table.add(op, getattr(strided, op), dtypes=ALL_DTYPES)
    for op, view in (
        ("select_scatter", strided.select),
        ("slice_scatter", strided.sliced),
        ("diagonal_scatter", strided.diagonal),
    ):
        table.add(op, strided.written(view), dtypes=ALL_DTYPES)
    table.add("view_as_real", strided.view_as_real, dtypes=COMPLEX)
    table.add("view_as_complex", strided.view_as_complex, dtypes=SINGLE_AND_DOUBLE)
    gradient = strided.as_strided_backward_kernel(below("as_strided_backward"))
    table.add("as_strided_backward", gradient, dtypes=SINGLE_AND_DOUBLE)
    table.add("as_strided", strided.as_strided_kernel(below("as_strided")), dtypes=ALL_DTYPES)
