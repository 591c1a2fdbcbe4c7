"""Searches and orders for which NumPy has compiled loops."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from tensorplug.plugin import KernelTable, dtype_named

Array = np.ndarray[Any, Any]


def build(table: KernelTable) -> None:
    """Add these kernels to `table`, above the shared ones."""
    table.add("searchsorted", _searchsorted, priority=1)
    table.add("lexsort", _lexsort, priority=1)
    # A partition finds the middle in linear time where the decomposition sorts.
    table.add("median_all", _median_all, dtypes=[dtype_named("float32"), dtype_named("float64")])


def _searchsorted(sorted_sequence: Array, input: Array, right: bool) -> Any:
    if sorted_sequence.dtype.kind == "V":
        sorted_sequence = sorted_sequence.astype(np.float32)
        input = input.astype(np.float32)
    side: Literal["left", "right"] = "right" if right else "left"
    if sorted_sequence.ndim == 1:
        found = sorted_sequence.searchsorted(input, side)
    else:
        found = np.empty(input.shape, np.int64)
        for row in np.ndindex(input.shape[:-1]):
            found[row] = np.searchsorted(sorted_sequence[row], input[row], side)
    if input.dtype.kind == "f":
        # NumPy would put a NaN before those of the sequence, torch puts it last.
        missing = input != input
        if missing.any():
            found = np.where(missing, sorted_sequence.shape[-1], found)
    return found


def _lexsort(input: Array) -> Any:
    if not input.shape[1]:
        return np.arange(input.shape[0])
    if input.dtype.kind == "V":
        input = input.astype(np.float32)
    return np.lexsort(input.T[::-1])


def _median_all(input: Array, ignore_nan: bool) -> Any:
    flat = input.reshape(-1)
    missing = int(np.isnan(flat).sum())
    if (missing and not ignore_nan) or missing == flat.size:
        return flat.dtype.type(np.nan)
    middle = (flat.size - missing - 1) // 2
    return np.partition(flat, middle)[middle]
