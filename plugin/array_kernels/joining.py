"""Kernels that join arrays."""

from __future__ import annotations

from typing import Any

from ..tables import KernelTable
from .namespace import ArrayNamespace


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    xp = namespace.xp

    def joined(arrays: list[Any], dim: int, first: Any) -> Any:
        """Return arrays one behind the other: row by row, but for channels-last images, as in torch."""
        result = xp.concatenate(arrays, dim)
        channels_last = first.ndim in (4, 5) and first.strides[1] == first.itemsize
        if result.flags.c_contiguous or channels_last:
            return result
        return xp.ascontiguousarray(result)

    @table.kernel()
    def cat(tensors: list[Any], dim: int) -> Any:
        return joined(tensors, dim, tensors[0])

    @table.kernel("stack")
    def stack(tensors: list[Any], dim: int) -> Any:
        shape = tensors[0].shape
        expanded = (*shape[:dim], 1, *shape[dim:])
        return joined([tensor.reshape(expanded) for tensor in tensors], dim, tensors[0])
