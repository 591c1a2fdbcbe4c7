"""Products of a sparse matrix, given by its parts, with a dense one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.autograd import derivative
from tensorplug.core.device.dtypes import float32
from tensorplug.core.dispatch.op_registry import composite
from tensorplug.core.ops import arange, searchsorted, zeros

if TYPE_CHECKING:
    from tensorplug.core import Tensor


@composite(name="sparse.coo_matmul", method=False)
def coo_matmul(rows: Tensor, columns: Tensor, values: Tensor, other: Tensor, size: int) -> Tensor:
    """Return the product of a sparse matrix and a dense one.

    Parameters
    ----------
    rows, columns : Tensor
        int64, (nnz,): where the elements are, in any order; what is at one place adds up.
    values : Tensor
        (nnz,).
    other : Tensor
        (columns of the sparse matrix, n), of the dtype of `values`.
    size : int
        The number of rows of the sparse matrix.

    Returns
    -------
    Tensor
        (size, n).

    Examples
    --------
    >>> import tensorplug as tp
    >>> import tensorplug.sparse
    >>> rows, columns = tp.tensor([0, 1, 1]), tp.tensor([2, 0, 2])
    >>> coo_matmul(rows, columns, tp.tensor([3.0, 4.0, 5.0]), tp.eye(3), 2)
    tensor([[0., 0., 3.],
            [4., 0., 5.]])
    """
    dtype = values.dtype
    if dtype.itemsize == 2 and dtype.is_floating_point:  # sums of many
        return coo_matmul(rows, columns, values.to(float32), other.to(float32), size).to(dtype)
    products = other.index_select(0, columns) * values.unsqueeze(1)
    empty = zeros(size, other._shape[1], dtype=products.dtype, device=products.device)
    return empty.index_add(0, rows, products)


@composite(name="sparse.csr_matmul", method=False)
def csr_matmul(crow_indices: Tensor, columns: Tensor, values: Tensor, other: Tensor) -> Tensor:
    """Return the product of a sparse matrix, stored row by row, and a dense one.

    Parameters
    ----------
    crow_indices : Tensor
        (rows + 1,): where in `columns` each row begins, and the last one ends.
    columns : Tensor
        (nnz,).
    values : Tensor
        (nnz,).
    other : Tensor
        (columns of the sparse matrix, n), of the dtype of `values`.

    Returns
    -------
    Tensor
        (rows, n).

    Examples
    --------
    >>> import tensorplug as tp
    >>> import tensorplug.sparse
    >>> starts, columns = tp.tensor([0, 1, 3]), tp.tensor([2, 0, 2])
    >>> csr_matmul(starts, columns, tp.tensor([3.0, 4.0, 5.0]), tp.eye(3))
    tensor([[0., 0., 3.],
            [4., 0., 5.]])
    """
    rows = rows_of(crow_indices, columns)
    return coo_matmul(rows, columns, values, other, crow_indices._shape[0] - 1)


def rows_of(crow_indices: Any, columns: Any) -> Any:
    """Return the row of each element that is stored row by row, (batch, nnz)."""
    places = arange(columns._shape[-1], dtype=crow_indices.dtype, device=crow_indices.device)
    ends = crow_indices[..., 1:].contiguous()
    if columns.dim() > 1:
        places = places.expand(columns._shape).contiguous()
    return searchsorted(ends, places, right=True)


def _gradient_of_values(g: Any, rows: Any, columns: Any, other: Any) -> Any:
    """Return the product of `g` and the transpose of `other`, only where the sparse matrix has elements."""
    return (g.index_select(0, rows) * other.index_select(0, columns)._conj()).sum(1)


def _csr_gradient_of_other(
    g: Any, crow_indices: Any, columns: Any, values: Any, other_shape: Any
) -> Any:
    rows = rows_of(crow_indices, columns)
    return coo_matmul(columns, rows, values._conj(), g, other_shape[0])


DERIVATIVES = [
    derivative(
        "sparse.coo_matmul",
        values=_gradient_of_values,
        other=lambda g, rows, columns, values, other_shape: coo_matmul(
            columns, rows, values._conj(), g, other_shape[0]
        ),
    ),
    derivative(
        "sparse.csr_matmul",
        values=lambda g, crow_indices, columns, other: _gradient_of_values(
            g, rows_of(crow_indices, columns), columns, other
        ),
        other=_csr_gradient_of_other,
    ),
]
