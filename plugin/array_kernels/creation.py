"""Kernels that make arrays."""

from __future__ import annotations

from typing import Any

from tensorplug.core.dtypes import DType, Number
from tensorplug.core.shapes import Shape

from ..tables import KernelTable
from .namespace import ArrayNamespace


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    xp = namespace.xp
    native = namespace.native

    @table.kernel()
    def fill_new(shape: Shape, value: Number, dtype: DType) -> Any:
        if not value:
            return xp.zeros(shape, native(dtype))
        return xp.full(shape, value, native(dtype))
