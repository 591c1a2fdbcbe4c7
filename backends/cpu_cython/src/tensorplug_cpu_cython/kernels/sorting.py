"""Kernels that sort and select."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import KernelTable

from .. import sorting, sorting_select
from .._dtypes import FLOATS, NUMBERED
from ..below import below


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    order, top_indices = below("_order"), below("_top_places")

    @table.kernel(dtypes=NUMBERED)
    def _order(input: Any, dim: int, descending: bool) -> Any:
        return sorting.order(input, dim, descending, order)

    @table.kernel(dtypes=NUMBERED)
    def _top_places(input: Any, k: int, dim: int, largest: bool) -> Any:
        return sorting.top_indices(input, k, dim, largest, top_indices)

    table.add("_sort", sorting.sort, dtypes=NUMBERED)
    table.add("_topk", sorting.top, dtypes=NUMBERED)
    table.add("_kth_along", sorting_select.kth, dtypes=NUMBERED)
    table.add("_median_along", sorting_select.median, dtypes=NUMBERED)
    table.add("_median_of_all", sorting_select.median_of_all, dtypes=NUMBERED)
    floats = [d for d in FLOATS if d.itemsize > 2]
    whole = [d for d in NUMBERED if d not in FLOATS and d.name != "bool"]
    table.add("_mode_along", sorting_select.mode, dtypes=[*floats, *whole])
    table.add("_among", sorting_select.among, dtypes=[*floats, *whole])
