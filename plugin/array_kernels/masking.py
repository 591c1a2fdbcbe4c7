"""Kernels of choice by a mask."""

from __future__ import annotations

from typing import Any

from ..tables import KernelTable
from .namespace import ArrayNamespace


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    xp = namespace.xp

    @table.kernel()
    def where(condition: Any, input: Any, other: Any) -> Any:
        return xp.where(condition, input, other)
