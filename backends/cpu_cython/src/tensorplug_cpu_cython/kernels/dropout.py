"""Kernels of dropout."""

from __future__ import annotations

from tensorplug.plugin import KernelTable

from .. import dropout
from .._dtypes import FLOATS


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    table.add("native_dropout", dropout.forward, dtypes=FLOATS)
    table.add("native_dropout_backward", dropout.backward, dtypes=FLOATS)
