"""Kernels of maximum, minimum and clamp."""

from __future__ import annotations

from ..tables import KernelTable
from .namespace import ArrayNamespace

_UNIVERSAL = {
    "clamp_max": "minimum",
    "clamp_min": "maximum",
    "maximum": "maximum",
    "minimum": "minimum",
}


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    for op, name in _UNIVERSAL.items():
        table.add(op, getattr(namespace.xp, name), out=True)
