"""Kernels of linear maps."""

from __future__ import annotations

from typing import Any

from tensorplug.core.device.dtypes import bfloat16, float16

from ..tables import KernelTable
from .namespace import ArrayNamespace


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    xp = namespace.xp

    @table.kernel()
    def grouped_mm(mat_a: Any, mat_b: Any, offs: Any) -> Any:
        if offs is None:
            return xp.matmul(mat_a, mat_b)
        ends = offs.tolist()
        parts = [
            (slice(a, b), n) for n, (a, b) in enumerate(zip([0, *ends[:-1]], ends, strict=True))
        ]
        last = max(ends, default=0)
        if mat_b.ndim == 3:
            rest = xp.zeros((mat_a.shape[0] - last, mat_b.shape[-1]), dtype=mat_a.dtype)
            return xp.concatenate([*[xp.matmul(mat_a[p], mat_b[n]) for p, n in parts], rest])
        if mat_a.ndim == 3:
            rest = xp.zeros((mat_a.shape[1], mat_b.shape[1] - last), dtype=mat_a.dtype)
            columns = [xp.matmul(mat_a[n], mat_b[:, p]) for p, n in parts]
            return xp.concatenate([*columns, rest], axis=1)
        if not parts:
            return xp.zeros((0, mat_a.shape[0], mat_b.shape[1]), dtype=mat_a.dtype)
        return xp.stack([xp.matmul(mat_a[:, p], mat_b[p]) for p, _ in parts])

    table.add("grouped_mm", namespace.through_float32(grouped_mm), dtypes=(float16, bfloat16))
