"""Kernels that sort, select and count."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import KernelTable

from .. import orders, selections
from .._dtypes import FLOATS, NUMBERED
from ..below import below


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    order, top_places = below("_order"), below("_top_places")

    @table.kernel(dtypes=NUMBERED)
    def _order(input: Any, dim: int, descending: bool) -> Any:
        return orders.order(input, dim, descending, order)

    @table.kernel(dtypes=NUMBERED)
    def _top_places(input: Any, k: int, dim: int, largest: bool) -> Any:
        return orders.top_places(input, k, dim, largest, top_places)

    table.add("_sort", orders.sort, dtypes=NUMBERED)
    table.add("_topk", orders.top, dtypes=NUMBERED)
    table.add("_kth_along", selections.kth, dtypes=NUMBERED)
    table.add("_median_along", selections.median, dtypes=NUMBERED)
    table.add("_median_of_all", selections.median_of_all, dtypes=NUMBERED)
    floats = [d for d in FLOATS if d.itemsize > 2]
    table.add("_quantiles", selections.quantiles, dtypes=floats)
    table.add("_even_counts", selections.even_counts, dtypes=floats)
    whole = [d for d in NUMBERED if d not in FLOATS and d.name != "bool"]
    table.add("_occurrences", selections.occurrences, dtypes=whole)
    table.add("_mode_along", selections.mode, dtypes=[*floats, *whole])
    table.add("_among", selections.among, dtypes=[*floats, *whole])
