"""Kernels of bitwise ops."""

from __future__ import annotations

from ..tables import KernelTable
from .namespace import ArrayNamespace

# Shifts by a negative number, or by at least as many bits as there are, have the declared result in
# NumPy; a library in which they have not supplies its own.
_UNIVERSAL = {
    "bitwise_and": "bitwise_and",
    "bitwise_left_shift": "left_shift",
    "bitwise_not": "invert",
    "bitwise_or": "bitwise_or",
    "bitwise_right_shift": "right_shift",
    "bitwise_xor": "bitwise_xor",
}


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    for op, name in _UNIVERSAL.items():
        table.add(op, getattr(namespace.xp, name), out=True)
