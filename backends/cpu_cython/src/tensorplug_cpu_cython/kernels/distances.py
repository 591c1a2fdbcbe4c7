"""Kernels of distances between vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable

from .. import distances
from ..halves import add_floats


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    for function in (minkowski_dist, minkowski_dist_backward, pdist, pdist_backward):
        add_floats(table, function.__name__, function)


def minkowski_dist(x1: Any, x2: Any, p: float) -> Any:
    """Return the distances of rows to others."""
    return distances.pairs(x1, x2, p, False)


def minkowski_dist_backward(g: Any, x1: Any, x2: Any, p: float, result: Any) -> tuple[Any, Any]:
    """Return the gradients of both."""
    of_rows, of_columns = distances.pairs_backward(g, x1, x2, p, result, False)
    return of_rows, np.ascontiguousarray(of_columns.swapaxes(-1, -2))


def pdist(input: Any, p: float) -> Any:
    """Return the distances of rows to those behind them."""
    return distances.pairs(input, input, p, True)


def pdist_backward(g: Any, input: Any, p: float, result: Any) -> Any:
    """Return the gradient of the rows."""
    if not result.size:  # one row has no other
        return np.zeros(input.shape, input.dtype)
    of_rows, of_columns = distances.pairs_backward(g, input, input, p, result, True)
    return of_rows + of_columns.T
