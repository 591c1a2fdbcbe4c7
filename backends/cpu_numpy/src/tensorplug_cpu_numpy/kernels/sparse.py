"""Products with sparse matrices, by SciPy's compiled loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable, dtype_named

Array = np.ndarray[Any, Any]

#: What SciPy multiplies without a conversion.
_DTYPES = [
    dtype_named(name)
    for name in ("float32", "float64", "complex64", "complex128", "int32", "int64")
]


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    table.add("sparse.coo_matmul", coo_matmul, dtypes=_DTYPES)
    table.add("sparse.csr_matmul", csr_matmul, dtypes=_DTYPES)


def coo_matmul(rows: Array, columns: Array, values: Array, other: Array, size: int) -> Any:
    """Return the product of a sparse matrix, given by coordinates, and a dense one."""
    from scipy.sparse import coo_array  # 100 ms at the first use, not at the first op

    return coo_array((values, (rows, columns)), (size, other.shape[0])) @ other


def csr_matmul(crow_indices: Array, columns: Array, values: Array, other: Array) -> Any:
    """Return the product of a sparse matrix, stored row by row, and a dense one."""
    from scipy.sparse import csr_array

    shape = (len(crow_indices) - 1, other.shape[0])
    if values.size and not 0 <= columns.min() <= columns.max() < shape[1]:
        raise IndexError(f"csr_matmul(): a column lies outside of the {shape[1]} that there are")
    return csr_array((values, columns, crow_indices), shape) @ other
