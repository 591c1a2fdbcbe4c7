"""Max pooling."""

from __future__ import annotations

from tensorplug.plugin import KernelTable

from .. import pooling
from .._dtypes import FLOATS


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    for name in ("max_pool", "max_pool_gradient"):
        table.add(name, getattr(pooling, name), dtypes=FLOATS)
