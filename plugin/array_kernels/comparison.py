"""Kernels of comparisons."""

from __future__ import annotations

from typing import Any

from ..tables import KernelTable
from .namespace import ArrayNamespace

_UNIVERSAL = {
    "eq": "equal",
    "ge": "greater_equal",
    "gt": "greater",
    "le": "less_equal",
    "lt": "less",
    "ne": "not_equal",
}


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    for op, name in _UNIVERSAL.items():
        table.add(op, getattr(namespace.xp, name), out=True)

    @table.kernel()
    def equal(input: Any, other: Any) -> bool:
        return bool((input == other).all())
