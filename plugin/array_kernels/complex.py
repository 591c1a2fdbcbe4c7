"""Kernels of complex numbers and their parts."""

from __future__ import annotations

from typing import Any

from tensorplug.core.device.dtypes import float32, float64

from ..tables import KernelTable
from .namespace import ArrayNamespace


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    xp = namespace.xp

    def joined(real: Any, imag: Any) -> Any:
        double = real.dtype.itemsize == 8
        shape = xp.broadcast_shapes(real.shape, imag.shape)
        result = xp.empty(shape, "complex128" if double else "complex64")
        result.real, result.imag = real, imag
        return result

    singles = [dtype for dtype in (float32, float64) if dtype in namespace.natives]
    table.add("complex", joined, dtypes=singles)
