"""Cumulative ops for which NumPy has compiled loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable, dtype_named

Array = np.ndarray[Any, Any]


def build(table: KernelTable) -> None:
    """Add these kernels to `table`, above the shared ones."""
    table.add("_running_maximum", _running_maximum, priority=1)
    table.add(
        "logcumsumexp",
        _logcumsumexp,
        dtypes=[dtype_named("float32"), dtype_named("float64")],
        priority=1,
    )


def _running_maximum(input: Array, dim: int) -> Any:
    if input.ndim == 0:
        return input.copy()
    if input.dtype.kind == "V":  # bfloat16 has no loop of its own
        return np.maximum.accumulate(input.astype(np.float32), dim).astype(input.dtype)
    return np.maximum.accumulate(input, dim)


def _logcumsumexp(input: Array, dim: int) -> Any:
    return np.logaddexp.accumulate(input, dim) if input.ndim else input.copy()
