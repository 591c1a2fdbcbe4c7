"""Kernels of variances, quantiles and counts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable, Shape

from .. import sorting_search, sorting_select, statistics
from .._dtypes import FLOATS, NUMBERED


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""

    @table.kernel(dtypes=FLOATS)
    def var(input: Any, dim: Shape, correction: float, keepdim: bool) -> Any:
        found = statistics.reduce(input, statistics.VARIANCE, tuple(dim), correction, keepdim)
        return _variance(input, dim, correction, keepdim) if found is None else found

    @table.kernel(dtypes=FLOATS)
    def std(input: Any, dim: Shape, correction: float, keepdim: bool) -> Any:
        found = statistics.reduce(input, statistics.DEVIATION, tuple(dim), correction, keepdim)
        if found is None:
            found = np.sqrt(_variance(input, dim, correction, keepdim))
        return found

    floats = [d for d in FLOATS if d.itemsize > 2]
    whole = [d for d in NUMBERED if d not in FLOATS and d.name != "bool"]
    table.add("quantile", _quantile(False), dtypes=floats)
    table.add("nanquantile", _quantile(True), dtypes=floats)
    table.add("histogram_counts", sorting_select.even_counts, dtypes=floats)
    table.add("grid_counts", sorting_search.grid_counts, dtypes=floats)
    table.add("bincount", _bincount, dtypes=whole)


def _quantile(ignore_nan: bool) -> Any:
    def quantile(input: Any, q: Any, dim: int | None, keepdim: bool, interpolation: str) -> Any:
        rows = input.reshape(-1) if dim is None else np.moveaxis(input, dim, -1)
        found = sorting_select.quantiles(rows, q.reshape(-1), ignore_nan, interpolation)
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
        return sorting_select.occurrences(input, bins)
    return np.bincount(input, weights, bins)


# For empty arrays, and dimensions that are kept between reduced ones.


def wide(input: Any) -> Any:
    """Return half floats as float32."""
    return np.asarray(input, np.float32) if input.dtype.itemsize == 2 else np.asarray(input)


def _variance(input: Any, dim: Shape, correction: float, keepdim: bool) -> Any:
    x = wide(input)
    count = math.prod([x.shape[d] for d in dim])
    with np.errstate(all="ignore"):
        distance = x - x.sum(tuple(dim), keepdims=True) / x.dtype.type(count)
        total = (distance * distance).sum(tuple(dim), keepdims=keepdim)
        result = total / x.dtype.type(max(count - correction, 0) if count else 0)
    return np.asarray(result, input.dtype)
