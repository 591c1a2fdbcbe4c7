"""Kernels of variance."""

from __future__ import annotations

import math
from typing import Any

from tensorplug.core.device.dtypes import float32, float64
from tensorplug.core.tensor.shapes import Shape

from ..tables import KernelTable
from .namespace import ArrayNamespace


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    reduce_add = namespace.reduce_add

    @table.kernel(dtypes=(float32, float64))
    def var(input: Any, dim: Shape, correction: float, keepdim: bool) -> Any:
        count = math.prod([input.shape[d] for d in dim])
        zero = input.dtype.type(0)
        distance = input - reduce_add(input, dim, None, None, True) / (count or zero)
        distance *= distance
        freedom = max(count - correction, 0) if count else 0
        return reduce_add(distance, dim, None, None, keepdim) / (freedom or zero)

    @table.kernel(dtypes=(float32, float64))
    def std(input: Any, dim: Shape, correction: float, keepdim: bool) -> Any:
        return namespace.xp.sqrt(var(input, dim, correction, keepdim))
