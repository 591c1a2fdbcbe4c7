"""Kernels that choose by a mask."""

from __future__ import annotations

from tensorplug.plugin import ALL_DTYPES, KernelTable

from .. import indexing, pointwise
from .._dtypes import ELEMENTS
from ..below import below


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    table.add("where", pointwise.choose, dtypes=ELEMENTS)
    put_masked = indexing.put_masked_kernel(below("masked_scatter"))
    table.add("masked_scatter", put_masked, dtypes=ALL_DTYPES)
