"""Max and average pooling."""

from __future__ import annotations

from tensorplug.plugin import KernelTable

from .. import pooling_average, pooling_max
from .._dtypes import FLOATS


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    for name in ("max_pool", "max_pool_backward"):
        table.add(name, getattr(pooling_max, name), dtypes=FLOATS)
    for name in (
        "avg_pool",
        "avg_pool_backward",
        "adaptive_avg_pool",
        "adaptive_avg_pool_backward",
    ):
        table.add(name, getattr(pooling_average, name), dtypes=FLOATS)
