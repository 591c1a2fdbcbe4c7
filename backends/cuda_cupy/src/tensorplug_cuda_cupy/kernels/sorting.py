"""The first elements of an order, by the shared kernels that sort."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import KernelTable


def build(table: KernelTable) -> None:
    """Add these kernels to `table`, above the shared ones."""
    sorting = {kernel.dtypes: kernel.function for kernel in table.kernels if kernel.op == "_order"}
    for dtypes, argsort in sorting.items():
        table.add("_top_places", _top_indices(argsort), dtypes=dtypes, priority=1)


def _top_indices(argsort: Any) -> Any:
    def top_indices(input: Any, k: int, dim: int, largest: bool) -> Any:
        found = argsort(input, dim, largest)
        if not input.ndim:
            return found
        return found[(slice(None),) * dim + (slice(0, k),)]

    return top_indices
