"""Kernels of complex numbers and their parts."""

from __future__ import annotations

from tensorplug.plugin import KernelTable

from .. import strided
from .._dtypes import SINGLE_AND_DOUBLE


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    table.add("complex", strided.complex_of, dtypes=SINGLE_AND_DOUBLE)
