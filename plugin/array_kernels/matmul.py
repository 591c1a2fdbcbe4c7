"""The kernel of matrix products."""

from __future__ import annotations

from typing import Any

from tensorplug.core.device.dtypes import bfloat16, float16

from ..tables import KernelTable
from .namespace import ArrayNamespace


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    batched = namespace.xp.matmul

    @table.kernel()
    def matmul(input: Any, other: Any) -> Any:
        if other.ndim <= 2:
            if input.ndim <= 2:
                return input.dot(other)
            if other.ndim == 2:
                # One product of a tall matrix beats a loop over the batch.
                rows = input.reshape((-1, input.shape[-1])) if input.size else None
                if rows is not None:
                    return rows.dot(other).reshape((*input.shape[:-1], other.shape[1]))
        return batched(input, other)

    table.add("matmul", namespace.through_float32(matmul), dtypes=(float16, bfloat16))
