"""Sparse tensors: those of which only some elements are stored.

They are made by :func:`tensorplug.sparse_coo_tensor` and :func:`tensorplug.sparse_csr_tensor`, by
``x.to_sparse()``, and as gradients of ``nn.Embedding(sparse=True)``. Here are torch's functions on them.
"""

from __future__ import annotations

from typing import Any

from tensorplug.core.ops.rules import check_tensor

from . import plugin as plugin  # isort: skip  # first: it registers the ops
from .compressed_creation import (
    sparse_bsc_tensor,
    sparse_bsr_tensor,
    sparse_compressed_tensor,
    sparse_csc_tensor,
    sparse_csr_tensor,
)
from .creation import check_sparse_tensor_invariants, sparse_coo_tensor, spdiags
from .layouts import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from .products import addmm, as_hybrid, matmul, reduced_product, sampled_addmm, sspaddmm
from .reductions import log_softmax, softmax, sum
from .tensors import SparseTensor

__all__ = [
    "addmm",
    "check_sparse_tensor_invariants",
    "hspmm",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "smm",
    "softmax",
    "sparse_bsc",
    "sparse_bsc_tensor",
    "sparse_bsr",
    "sparse_bsr_tensor",
    "sparse_compressed_tensor",
    "sparse_coo",
    "sparse_coo_tensor",
    "sparse_csc",
    "sparse_csc_tensor",
    "sparse_csr",
    "sparse_csr_tensor",
    "spdiags",
    "spmm",
    "sspaddmm",
    "sum",
]


def mm(mat1: Any, mat2: Any, reduce: str = "sum") -> Any:
    """Return the product of two matrices of which one at least is sparse.

    Parameters
    ----------
    mat1, mat2 : Tensor
        (n, m) and (m, p). The result is sparse if both are, else dense.
    reduce : str
        How the terms of each element come together: "sum", as in every product, or "mean", "amax", "amin",
        "prod", over those of the elements that `mat1` stores. Others than "sum" are there of `mat1` of
        layout ``tp.sparse_csr`` and a dense `mat2`.

    Notes
    -----
    The gradient of a sparse matrix has elements where the matrix has.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
    >>> tp.sparse.mm(x, tp.ones(3, 1))
    tensor([[3.],
            [9.]])
    """
    check_tensor(mat1, "mm", "mat1")
    check_tensor(mat2, "mm", "mat2")
    if not isinstance(mat1, SparseTensor) and not isinstance(mat2, SparseTensor):
        return mat1.mm(mat2)
    if mat1.dim() != 2 or mat2.dim() != 2:
        raise RuntimeError(
            f"sparse.mm(): expected matrices, got shapes {list(mat1.shape)} and {list(mat2.shape)}"
        )
    return matmul(mat1, mat2, "mm") if reduce == "sum" else reduced_product(mat1, mat2, reduce)


def spmm(input: Any, mat2: Any) -> Any:
    """Return :func:`mm` of two matrices.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.spmm(tp.eye(2).to_sparse(), tp.ones(2, 1))
    tensor([[1.],
            [1.]])
    """
    return mm(input, mat2)


def hspmm(mat1: Any, mat2: Any) -> Any:
    """Return the product of a sparse matrix and a dense one, as a sparse one of dense rows.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.hspmm(tp.eye(2).to_sparse(), tp.ones(2, 1)).dense_dim()
    1
    """
    return as_hybrid(mm(mat1, mat2))


def smm(input: Any, mat: Any) -> Any:
    """Return the product of a sparse matrix and a dense one, as a sparse one.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.smm(tp.eye(2).to_sparse(), tp.ones(2, 1)).layout
    tensorplug.sparse_coo
    """
    return mm(input, mat).to_sparse()
