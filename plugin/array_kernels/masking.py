"""Kernels of choice by a mask."""

from __future__ import annotations

from typing import Any

from ..tables import KernelTable
from .namespace import ArrayNamespace

#: What is said where a source has fewer elements than there are places for them.
TOO_FEW = "masked_scatter: Number of elements of source ({}) < number of ones in mask ({})"


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    xp = namespace.xp

    @table.kernel()
    def where(condition: Any, input: Any, other: Any) -> Any:
        return xp.where(condition, input, other)

    @table.kernel()
    def masked_scatter(input: Any, mask: Any, source: Any) -> Any:
        shape = xp.broadcast_shapes(input.shape, mask.shape)
        mask = xp.broadcast_to(mask, shape)
        count = int(mask.sum())
        if source.size < count:
            raise RuntimeError(TOO_FEW.format(source.size, count))
        result = xp.array(xp.broadcast_to(input, shape), order="C", copy=True)
        result[mask] = source.reshape(-1)[:count]
        return result
