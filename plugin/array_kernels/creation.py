"""Kernels that make arrays."""

from __future__ import annotations

from typing import Any

from tensorplug.core.device.dtypes import DType, Number, float32, float64, int64
from tensorplug.core.tensor.shapes import Shape

from ..tables import KernelTable
from .namespace import ArrayNamespace


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    xp = namespace.xp
    native = namespace.native

    @table.kernel()
    def fill_new(shape: Shape, value: Number, dtype: DType) -> Any:
        if isinstance(value, int) and not value:  # a float may be -0.0
            return xp.zeros(shape, native(dtype))
        return xp.full(shape, value, native(dtype))

    wide = native(float64 if float64 in namespace.natives else float32)

    @table.kernel()
    def arange_new(start: Number, step: Number, count: int, dtype: DType) -> Any:
        if isinstance(start, int) and isinstance(step, int):
            numbers = xp.arange(count, dtype=native(int64))
        elif isinstance(start, complex) or isinstance(step, complex):
            numbers = xp.arange(count).astype(native(dtype))
        else:
            numbers = xp.arange(count, dtype=wide)
        if step != 1:
            numbers *= step
        if start:
            numbers += start
        return numbers.astype(native(dtype), copy=False)
