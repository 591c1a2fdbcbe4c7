"""The largest and smallest elements along a dimension, with their indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorplug.plugin import ALL_DTYPES, KernelTable

Array = np.ndarray[Any, Any]
_ORDERED = [dtype for dtype in ALL_DTYPES if not dtype.is_complex]


def build(table: KernelTable) -> None:
    """Add these kernels to `table`."""
    for op, places in (("max", "argmax"), ("min", "argmin")):
        table.add(op, _extreme(places), dtypes=[d for d in _ORDERED if d.name != "bfloat16"])


def _extreme(name: str) -> Any:
    places = getattr(np, name)

    def extreme(input: Array, dim: int, keepdim: bool) -> tuple[Any, Any]:
        if not input.ndim:
            return input.copy(), np.zeros((), np.int64)
        indices = places(input, dim, keepdims=True)
        values = np.take_along_axis(input, indices, dim)
        return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))

    return extreme
