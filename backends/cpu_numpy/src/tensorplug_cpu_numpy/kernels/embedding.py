"""Rows of a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable

Array = np.ndarray[Any, Any]


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    table.add("embedding", embedding)


def embedding(weight: Array, indices: Array, *_: Any) -> Array:
    """Return the rows of `weight` that `indices` names."""
    if indices.size and indices.min() < 0:
        raise IndexError(f"index {indices.min()} is out of bounds: there are {len(weight)} rows")
    return weight.take(indices, 0)
