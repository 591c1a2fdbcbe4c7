"""Kernels of dropout."""

from __future__ import annotations

from tensorplug.plugin import KernelTable

from .. import dropout
from .._dtypes import FLOATS


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    table.add("random_dropout", dropout.forward, dtypes=FLOATS)
    table.add("dropout_gradient", dropout.backward, dtypes=FLOATS)
