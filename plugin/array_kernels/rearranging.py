"""Kernels that rearrange elements."""

from __future__ import annotations

from typing import Any

from tensorplug.core.tensor.shapes import Shape

from ..tables import KernelTable
from .namespace import ArrayNamespace


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    xp = namespace.xp

    @table.kernel()
    def flip(input: Any, dims: Shape) -> Any:
        backwards = slice(None, None, -1)
        key = tuple([backwards if d in dims else slice(None) for d in range(input.ndim)])
        return xp.array(input[key], order="K", copy=True)
