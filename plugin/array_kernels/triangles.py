"""Kernels of triangles of matrices."""

from __future__ import annotations

from ..tables import KernelTable
from .namespace import ArrayNamespace


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    xp = namespace.xp
    table.add("tril", lambda input, diagonal: xp.tril(input, diagonal))
    table.add("triu", lambda input, diagonal: xp.triu(input, diagonal))
