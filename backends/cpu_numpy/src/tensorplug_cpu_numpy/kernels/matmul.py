"""Products of matrices of integers by BLAS, which multiplies floating-point numbers only."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorplug.plugin import ALL_DTYPES, KernelTable

Array = np.ndarray[Any, Any]

INTEGERS = [d for d in ALL_DTYPES if d.name.startswith(("int", "uint"))]
EXACT = 2**53  # up to which float64 has all whole numbers
_FEW = 1 << 13  # multiplications, below which NumPy's own loop is done sooner


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    table.add("matmul", integer_matmul, dtypes=INTEGERS)


def integer_matmul(input: Array, other: Array) -> Array:
    """Return the product, modulo what the dtype holds; by BLAS, in parts where it is not exact otherwise."""
    columns = other.shape[-1] if other.ndim > 1 else 1
    if input.size * columns < _FEW or not other.size:
        return _product(input, other)
    if _largest(input) * _largest(other) * input.shape[-1] > EXACT:
        return _product_of_parts(input, other)
    product = _product(input.astype(np.float64), other.astype(np.float64))
    return np.asarray(product, np.int64).astype(input.dtype)


def _product_of_parts(input: Array, other: Array) -> Array:
    """Return the product as the sum of those of parts of the integers' bits, each of which is exact."""
    bits, count = (16, 2) if input.dtype.itemsize == 4 else (22, 3)
    left, right = _parts(input, bits, count), _parts(other, bits, count)
    step = EXACT >> 2 * (bits - 1)
    total: Any = 0
    for start in range(0, input.shape[-1], step):
        columns = np.s_[..., start : start + step]
        rows = columns if other.ndim == 1 else (*columns, slice(None))
        for place in range(count):  # what stands further to the left is beyond the dtype
            for i in range(place + 1):
                product = _product(left[i][columns], right[place - i][rows])
                total = total + (np.asarray(product, np.int64) << place * bits)
    return np.asarray(total).astype(input.dtype)


def _parts(array: Array, bits: int, count: int) -> list[Array]:
    """Return the lowest bits, the next ones and so on, as float64 of both signs."""
    rest = array.astype(np.int64)
    half = 1 << bits - 1
    parts = []
    for _ in range(count):
        low = ((rest + half) & (2 * half - 1)) - half
        parts.append(low.astype(np.float64))
        rest = (rest - low) >> bits
    return parts


def _product(a: Array, b: Array) -> Array:
    return a.dot(b) if a.ndim <= 2 and b.ndim <= 2 else np.matmul(a, b)


def _largest(array: Array) -> int:
    """Return the largest magnitude that the elements may have."""
    if array.dtype.itemsize < 4:
        return 1 << 8 * array.dtype.itemsize
    return max(int(array.max()), -int(array.min()))
