"""Kernels of functions of representation."""

from __future__ import annotations

from tensorplug.plugin import KernelTable

from .. import numeric
from .._dtypes import SINGLE_AND_DOUBLE


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    table.add("frexp", numeric.frexp, dtypes=SINGLE_AND_DOUBLE)
