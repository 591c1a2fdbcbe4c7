"""The first elements of an order, by the shared kernels that sort."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import KernelTable

from .._cupy import cp


def build(table: KernelTable) -> None:
    """Add these kernels to `table`, above the shared ones."""
    sorting = {kernel.dtypes: kernel.function for kernel in table.kernels if kernel.op == "argsort"}
    for dtypes, argsort in sorting.items():
        table.add("topk", _topk(argsort), dtypes=dtypes, priority=1)


def _topk(argsort: Any) -> Any:
    def topk(input: Any, k: int, dim: int, largest: bool) -> tuple[Any, Any]:
        found = argsort(input, dim, largest)[(slice(None),) * dim + (slice(0, k),)]
        return cp.take_along_axis(input, found, dim), found

    return topk
