"""Kernels that choose by a mask."""

from __future__ import annotations

from tensorplug.plugin import KernelTable

from .. import pointwise
from .._dtypes import NUMBERED


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    table.add("where", pointwise.choose, dtypes=NUMBERED)
