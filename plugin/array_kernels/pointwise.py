"""Pointwise kernels."""

from __future__ import annotations

from ..tables import KernelTable
from .namespace import ArrayNamespace

# Ops that the library has under a name of its own, as a universal function with out=.
_UNIVERSAL = {
    "add": "add",
    "conj": "conjugate",
    "exp": "exp",
    "mul": "multiply",
    "neg": "negative",
    "sub": "subtract",
}


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    xp = namespace.xp
    for op, name in _UNIVERSAL.items():
        table.add(op, getattr(xp, name), out=True)
