"""Kernels of this package for "cpu", over raw NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable, dtype_named

table = KernelTable("cpu")

#: How many bytes of the weight are in floating point at a time: they should stay in a core's cache.
BLOCK = 1 << 20


@table.kernel("quant._matmul_int8", dtypes=[dtype_named("float32"), dtype_named("float64")])
def matmul_int8(input: Any, weight: Any) -> Any:
    """Multiply by some columns of the weight after the other, each converted into the same buffer."""
    inner, columns = weight.shape
    result = np.empty((*input.shape[:-1], columns), input.dtype)
    if not result.size:
        return result
    if not inner:
        result.fill(0)
        return result
    rows, products = input.reshape(-1, inner), result.reshape(-1, columns)
    width = min(columns, max(BLOCK // (inner * input.itemsize), 16))
    # The buffer lies in memory as the weight does, whose columns may be the rows of what is stored.
    across = weight.strides[0] <= weight.strides[1]
    buffer = (
        np.empty((width, inner), input.dtype).T if across else np.empty((inner, width), input.dtype)
    )
    for start in range(0, columns, width):
        part = weight[:, start : start + width]
        block = buffer[:, : part.shape[1]]
        np.copyto(block, part)
        np.matmul(rows, block, out=products[:, start : start + width])
    return result
