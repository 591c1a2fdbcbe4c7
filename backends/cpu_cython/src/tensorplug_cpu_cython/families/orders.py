"""Kernels that sort, select and count."""

from __future__ import annotations

from typing import Any

import numpy as np

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
    table.add("quantile", _quantile(False), dtypes=floats)
    table.add("nanquantile", _quantile(True), dtypes=floats)
    table.add("histogram_counts", selections.even_counts, dtypes=floats)
    whole = [d for d in NUMBERED if d not in FLOATS and d.name != "bool"]
    table.add("bincount", _bincount, dtypes=whole)
    table.add("mode", selections.mode, dtypes=[*floats, *whole])
    table.add("isin", selections.among, dtypes=[*floats, *whole])


def _quantile(ignore_nan: bool) -> Any:
    def quantile(input: Any, q: Any, dim: int | None, keepdim: bool, interpolation: str) -> Any:
        rows = input.reshape(-1) if dim is None else np.moveaxis(input, dim, -1)
        found = selections.quantiles(rows, q.reshape(-1), ignore_nan, interpolation)
        kept = rows.shape[:-1]
        if keepdim:
            kept = tuple([1 if dim in (None, d) else n for d, n in enumerate(input.shape)])
        return np.moveaxis(found, -1, 0).reshape((*q.shape, *kept))

    return quantile


def _bincount(input: Any, weights: Any, minlength: int) -> Any:
    bins = minlength
    if input.size:
        least = int(input.min())
        if least < 0:
            raise RuntimeError(
                f"bincount(): only supports 1-d non-negative integral inputs, got {least}"
            )
        bins = max(bins, int(input.max()) + 1)
    if weights is None:
        return selections.occurrences(input, bins)
    return np.bincount(input, weights, bins)
