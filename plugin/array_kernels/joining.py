"""Kernels that join arrays."""

from __future__ import annotations

from typing import Any

from ..tables import KernelTable
from .namespace import ArrayNamespace


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    xp = namespace.xp

    @table.kernel()
    def cat(tensors: list[Any], dim: int) -> Any:
        return xp.concatenate(tensors, dim)

    @table.kernel("stack")
    def stack(tensors: list[Any], dim: int) -> Any:
        shape = tensors[0].shape
        expanded = (*shape[:dim], 1, *shape[dim:])
        return xp.concatenate([tensor.reshape(expanded) for tensor in tensors], dim)
