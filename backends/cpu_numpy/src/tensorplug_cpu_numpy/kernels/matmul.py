"""Products of matrices of integers by BLAS, which multiplies floating-point numbers only."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorplug.plugin import ALL_DTYPES, KernelTable

Array = np.ndarray[Any, Any]

INTEGERS = [d for d in ALL_DTYPES if d.name.startswith(("int", "uint"))]
EXACT = 2**53  # up to which float64 has all whole numbers
_FEW = 2048  # multiplications, below which NumPy's own loop is done sooner


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    table.add("matmul", integer_matmul, dtypes=INTEGERS)


def integer_matmul(input: Array, other: Array) -> Array:
    """Return the product, modulo what the dtype holds; by BLAS, where that is exact."""
    columns = other.shape[-1] if other.ndim > 1 else 1
    few = input.size * columns < _FEW or not other.size
    if few or _largest(input) * _largest(other) * input.shape[-1] > EXACT:
        return _product(input, other)
    product = _product(input.astype(np.float64), other.astype(np.float64))
    return np.asarray(product, np.int64).astype(input.dtype)


def _product(a: Array, b: Array) -> Array:
    return a.dot(b) if a.ndim <= 2 and b.ndim <= 2 else np.matmul(a, b)


def _largest(array: Array) -> int:
    """Return the largest magnitude that the elements may have."""
    if array.dtype.itemsize < 4:
        return 1 << 8 * array.dtype.itemsize
    return max(int(array.max()), -int(array.min()))
