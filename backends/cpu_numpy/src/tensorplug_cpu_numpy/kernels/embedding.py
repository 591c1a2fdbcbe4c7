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
    if indices.size:
        lowest, highest = indices.min(), indices.max()
        if lowest < 0 or highest >= len(weight):
            wrong = lowest if lowest < 0 else highest
            raise IndexError(f"index out of range in self: {wrong}, of {len(weight)} rows")
    return weight.take(indices, 0)
