"""Max and average pooling."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import KernelTable

from .. import pooling_adaptive, pooling_average, pooling_max
from .._dtypes import FLOATS, SINGLE_AND_DOUBLE


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
    both = pooling_adaptive.adaptive_max_pool

    def values(input: Any, output_size: tuple[int, ...]) -> Any:
        return both(input, output_size)[0]

    for count in (1, 2, 3):
        table.add(f"adaptive_max_pool{count}d", values, dtypes=SINGLE_AND_DOUBLE)
        table.add(f"adaptive_max_pool{count}d_with_indices", both, dtypes=SINGLE_AND_DOUBLE)
    fractional = pooling_adaptive.fractional_max_pool

    def at_random_steps(
        input: Any, kernel_size: tuple[int, ...], output_size: tuple[int, ...], samples: Any
    ) -> Any:
        return fractional(input, kernel_size, output_size, samples)[0]

    for count in (2, 3):
        name = f"fractional_max_pool{count}d"
        table.add(name, at_random_steps, dtypes=SINGLE_AND_DOUBLE)
        table.add(f"{name}_with_indices", fractional, dtypes=SINGLE_AND_DOUBLE)
