"""Products with sparse matrices, by cuSPARSE through CuPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorplug.plugin import DType, KernelTable, dtype_named

from .._cupy import LazyModule, cp

_sparse: Any = LazyModule("cupyx.scipy.sparse")
_cusparse: Any = LazyModule("cupyx.cusparse")

#: What cuSPARSE multiplies.
_DTYPES = [dtype_named(name) for name in ("float32", "float64", "complex64", "complex128")]


def build(table: KernelTable) -> None:
    """Add these kernels to `table`."""
    table.add("sparse.coo_matmul", coo_matmul, accepts=_serves)
    table.add("sparse.csr_matmul", csr_matmul, accepts=_serves)


def _serves(dtype: DType) -> bool:
    """Return whether cuSPARSE is there, and takes a dtype; else the ops' own bodies serve."""
    try:
        return dtype in _DTYPES and bool(_cusparse.check_availability("spmm"))
    except Exception:  # a toolkit without the library fails in ways of its own
        return False


def coo_matmul(rows: Any, columns: Any, values: Any, other: Any, size: int) -> Any:
    """Return the product of a sparse matrix, given by coordinates, and a dense one."""
    shape = (size, other.shape[0])
    if not (values.size and other.size and size):
        return cp.zeros((size, other.shape[1]), values.dtype)
    matrix = _sparse.coo_matrix((values, (_short(rows), _short(columns))), shape=shape)
    return cp.ascontiguousarray(matrix.tocsr() @ other)


def csr_matmul(crow_indices: Any, columns: Any, values: Any, other: Any) -> Any:
    """Return the product of a sparse matrix, stored row by row, and a dense one."""
    shape = (crow_indices.size - 1, other.shape[0])
    if not (values.size and other.size):
        return cp.zeros((shape[0], other.shape[1]), values.dtype)
    matrix = _sparse.csr_matrix((values, _short(columns), _short(crow_indices)), shape=shape)
    return cp.ascontiguousarray(matrix @ other)


def _short(indices: Any) -> Any:
    """Return indices as cuSPARSE has them in CuPy: of 32 bits."""
    return indices.astype(np.int32, copy=False)
