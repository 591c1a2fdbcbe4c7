"""Kernels that reduce over dimensions."""

from __future__ import annotations

from typing import Any

from tensorplug.core.dtypes import bfloat16, float16
from tensorplug.core.shapes import Shape

from ..tables import KernelTable
from .namespace import ArrayNamespace


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    reduce_add = namespace.xp.add.reduce

    @table.kernel()
    def sum(input: Any, dim: Shape, keepdim: bool) -> Any:
        return reduce_add(input, dim, None, None, keepdim)

    table.add("sum", namespace.through_float32(sum), dtypes=(float16, bfloat16))
