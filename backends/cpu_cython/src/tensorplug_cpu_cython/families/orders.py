"""Kernels that sort, select and count."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import KernelTable

from .. import orders, selections
from .._dtypes import FLOATS, NUMBERED
from ..below import below


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    numpys = below("argsort")

    @table.kernel(dtypes=NUMBERED)
    def argsort(input: Any, dim: int, descending: bool) -> Any:
        return orders.order(input, dim, descending, numpys)

    @table.kernel(dtypes=NUMBERED)
    def median(input: Any, dim: int, keepdim: bool) -> Any:
        return selections.median(input, dim, keepdim, False)

    @table.kernel(dtypes=NUMBERED)
    def nanmedian(input: Any, dim: int, keepdim: bool) -> Any:
        return selections.median(input, dim, keepdim, True)

    table.add("sort", orders.sort, dtypes=NUMBERED)
    table.add("topk", orders.top, dtypes=NUMBERED)
    table.add("kthvalue", selections.kth, dtypes=NUMBERED)
    table.add("median_all", selections.median_of_all, dtypes=NUMBERED)
    floats = [d for d in FLOATS if d.itemsize > 2]
    table.add("_quantiles", selections.quantiles, dtypes=floats)
    table.add("_even_counts", selections.even_counts, dtypes=floats)
    whole = [d for d in NUMBERED if d not in FLOATS and d.name != "bool"]
    table.add("_occurrences", selections.occurrences, dtypes=whole)
    table.add("mode", selections.mode, dtypes=[*floats, *whole])
    table.add("isin", selections.among, dtypes=[*floats, *whole])
