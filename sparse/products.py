"""Products of sparse matrices with dense and sparse ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tensorplug.core.device.dtypes import int64
from tensorplug.core.ops import arange, searchsorted, stack
from tensorplug.core.ops.rules import check_tensor

from .arithmetic import as_coo, at_places_of, unique
from .compressed import CompressedTensor
from .compressed_indexing import expanded
from .coordinates import CooTensor
from .indexing import transpose
from .layouts import sparse_csr, title
from .ops.sparse import coo_matmul, csr_matmul
from .structure import compressed_of_coo, flat_places, spread
from .tensors import SparseTensor


def _check_matrix(tensor: Any, name: str) -> None:
    if isinstance(tensor, SparseTensor) and (tensor.sparse_dim() != 2 or tensor.dense_dim()):
        raise RuntimeError(
            f"{name}(): expected a sparse matrix, of two sparse dimensions and no dense one, got "
            f"sparse_dim={tensor.sparse_dim()}, dense_dim={tensor.dense_dim()}"
        )


def _by(tensor: Any) -> str:
    return "x".join(map(str, tensor.shape))


def _check_sizes(a: Any, b: Any, name: str) -> None:
    inner = b.shape[0]
    if a.shape[-1] != inner:
        raise RuntimeError(
            f"{name}(): mat1 and mat2 shapes cannot be multiplied ({_by(a)} and {_by(b)})"
        )
    _check_dtypes(a, b, name)


def _check_dtypes(a: Any, b: Any, name: str) -> None:
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"{name}(): expected m1 and m2 to have the same dtype, but got: {a.dtype} != {b.dtype}"
        )


def matmul(input: Any, other: Any, name: str = "matmul") -> Any:
    """Return the product of two matrices, or a matrix and a vector, of which one at least is sparse."""
    if input.dim() == 3 and other.dim() == 3:
        return _batch_product(input, other, name)
    _check_matrix(input, name)
    _check_matrix(other, name)
    if input.dim() == 1 and not isinstance(input, SparseTensor):
        _check_sizes(input, other, name)
        return matmul(transpose(other, 0, 1), input, name)
    if other.dim() == 1 and not isinstance(other, SparseTensor):
        return matmul(input, other.unsqueeze(1), name).squeeze(1)
    if input.dim() > 2 and other.dim() == 2 and not isinstance(input, SparseTensor):
        _check_sizes(input, other, name)
        rows = matmul(input.reshape(-1, input.shape[-1]), other, name)
        return rows.reshape(*input.shape[:-1], rows.shape[1])
    if input.dim() != 2 or other.dim() != 2:
        raise NotImplementedError(
            f"{name}(): a sparse matrix is multiplied by a matrix or a vector, got shapes "
            f"{list(input.shape)} and {list(other.shape)}"
        )
    _check_sizes(input, other, name)
    if not isinstance(input, SparseTensor):
        places = as_coo(other)
        columns, rows = places._where
        return coo_matmul(rows, columns, places._stored, input.t(), other._shape[1]).t()
    if isinstance(other, SparseTensor):
        return _sparse_product(input, other)
    if isinstance(input, CompressedTensor) and input._layout is sparse_csr:
        return csr_matmul(input._starts, input._plain, input._stored, other)
    elements = as_coo(input)
    rows, columns = elements._where
    return coo_matmul(rows, columns, elements._stored, other, input._shape[0])


def _sparse_product(input: Any, other: Any) -> Any:
    """Return the product of two sparse matrices: by coordinates if the first is, else row by row.

    Each element of the first meets a row of the second; rows are found by where they begin and end.
    """
    for each in (input, other):
        if getattr(each.layout, "blocked", False):
            raise RuntimeError(
                "mm(): of two sparse matrices, expected sparse compressed (non-block) tensor layout but got "
                f"{title(each.layout)}"
            )
    a, b = as_coo(input), unique(as_coo(other))
    starts = searchsorted(b._where[0].contiguous(), a._where[1].contiguous())
    ends = searchsorted(b._where[0].contiguous(), a._where[1].contiguous(), right=True)
    chosen, offsets = spread(starts, ends)
    values = a._stored.index_select(0, chosen) * b._stored.index_select(0, offsets)
    where = stack([a._where[0].index_select(0, chosen), b._where[1].index_select(0, offsets)])
    total = CooTensor.of(where, values, (a._shape[0], b._shape[1])).coalesce()
    return total if input.is_sparse else compressed_of_coo(total, sparse_csr)


def _mv(input: Any, vec: Any) -> Any:
    return matmul(input, vec, "mv")


def _batch_product(input: Any, other: Any, name: str) -> Any:
    """Return products of a batch: one product of a matrix whose blocks are those of the batch."""
    batch, rows, inner = input.shape
    if (
        not isinstance(input, SparseTensor)
        or isinstance(other, SparseTensor)
        or input.dense_dim()
        or (batch, inner) != tuple(other.shape[:2])
    ):
        raise RuntimeError(
            f"{name}(): of batches a sparse one of three sparse dimensions is multiplied by a dense one of "
            f"as many matrices, got {input.layout} of {_by(input)} and {other.layout} of {_by(other)}"
        )
    _check_dtypes(input, other, name)
    elements = as_coo(input)
    numbers, row, column = elements._where
    columns = other.shape[2]
    product = coo_matmul(
        numbers * rows + row, numbers * inner + column, elements._stored,
        other.reshape(batch * inner, columns), batch * rows,
    )  # fmt: skip
    return product.reshape(batch, rows, columns)


def _mm(input: Any, mat2: Any) -> Any:
    return matmul(input, mat2, "mm")


def _added(input: Any, product: Any, beta: Any, alpha: Any) -> Any:
    product = product if alpha == 1 else product * alpha
    if isinstance(beta, (int, float)) and beta == 0:
        if isinstance(product, SparseTensor) and not isinstance(input, SparseTensor):
            return product.to_dense()
        return (
            product.to_sparse(layout=input.layout) if _are_compressed(input, product) else product
        )
    input = input if beta == 1 else input * beta
    return input + product


def _are_compressed(*tensors: Any) -> bool:
    return all([isinstance(tensor, CompressedTensor) for tensor in tensors])


def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return ``beta * input + alpha * (mat1 @ mat2)``."""
    for name, given in (("input", input), ("mat1", mat1), ("mat2", mat2)):
        check_tensor(given, "addmm", name)
    return _added(input, matmul(mat1, mat2, "addmm"), beta, alpha)


def _addmv(input: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return _added(input, matmul(mat, vec, "addmv"), beta, alpha)


def _linear(input: Any, weight: Any, bias: Any = None) -> Any:
    if not isinstance(input, SparseTensor) and input.dim() != 2:
        flat = input.reshape(-1, input.shape[-1])
        product = matmul(flat, transpose(weight, 0, 1), "linear")
        product = product.reshape(*input.shape[:-1], weight.shape[0])
    elif isinstance(weight, SparseTensor):
        product = matmul(input, transpose(weight, 0, 1), "linear")
    else:
        product = matmul(input, weight.t(), "linear")
    return product if bias is None else product + bias


def sampled_addmm(
    input: Any, mat1: Any, mat2: Any, *, beta: Any = 1.0, alpha: Any = 1.0, out: Any = None
) -> Any:
    """Return ``beta * input + alpha * (mat1 @ mat2)`` at the places of the sparse `input` only.

    Parameters
    ----------
    input : Tensor
        A sparse matrix, (n, p), or a batch of them.
    mat1, mat2 : Tensor
        Dense, (batch, n, m) and (batch, m, p).
    beta, alpha : number
        Factors.
    out : Tensor, optional
        A sparse tensor of the layout of `input`, which becomes the result.

    Examples
    --------
    >>> import tensorplug as tp
    >>> places = tp.sparse_csr_tensor([0, 1, 1], [1], [10.0], (2, 2))
    >>> x = tp.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> tp.sparse.sampled_addmm(places, x, x).to_dense()
    tensor([[ 0., 20.],
            [ 0.,  0.]])
    """
    for name, given in (("input", input), ("mat1", mat1), ("mat2", mat2)):
        check_tensor(given, "sampled_addmm", name)
    if not isinstance(input, SparseTensor):
        raise RuntimeError(
            f"sampled_addmm(): expected a sparse tensor to say where, got {input.layout}"
        )
    if isinstance(input, CompressedTensor) and input.dim() == 2 < mat1.dim() == mat2.dim():
        input = expanded(input, tuple(mat1.shape[:-2]))
    if not isinstance(input, CompressedTensor) or input.dim() == 2:
        _check_matrix(input, "sampled_addmm")
        _check_sizes(mat1, mat2, "sampled_addmm")
    elif input.dense_dim() or not mat1.dim() == mat2.dim() == input.dim():
        raise RuntimeError(
            "sampled_addmm(): a batch of sparse matrices takes as many dense ones, got input "
            f"{list(input.shape)}, mat1 {list(mat1.shape)}, mat2 {list(mat2.shape)}"
        )
    expected = (*mat1.shape[:-1], mat2.shape[-1])
    inner = (*mat1.shape[:-2], mat1.shape[-1], mat2.shape[-1])
    if tuple(input.shape) != expected or tuple(mat2.shape) != inner:
        raise RuntimeError(
            f"sampled_addmm(): mat1 {list(mat1.shape)} and mat2 {list(mat2.shape)} have no product of the "
            f"shape of self, {list(input.shape)}"
        )
    if out is not None:
        from .calls import written  # it needs this module

        options = {"beta": beta, "alpha": alpha}
        return written("sampled_addmm", sampled_addmm, (input, mat1, mat2), options, out)
    places = as_coo(input)
    numbers, (row, column) = places._where[:-2], places._where[-2:]
    leading = tuple(input.shape[:-2])
    count, size = math.prod(leading), mat1.shape[-1]
    rows = mat1.reshape(count * input.shape[-2], size)
    columns = mat2.transpose(-2, -1).reshape(count * input.shape[-1], size)
    rows = rows.index_select(0, flat_places(stack([*numbers, row]), (*leading, input.shape[-2])))
    columns = columns.index_select(
        0, flat_places(stack([*numbers, column]), (*leading, input.shape[-1]))
    )
    product = (rows * columns).sum(1) * alpha
    return at_places_of(input, places._stored * beta + product)


def reduced_product(mat1: Any, mat2: Any, reduce: str) -> Any:
    """Return a product whose terms are not summed: their mean, or the largest or smallest of them.

    It is over the terms of the elements that `mat1` stores; where a row has none, it is zero.
    """
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce not in REDUCTIONS:
        raise RuntimeError(
            f"mm(): reduce argument must be one of {', '.join(REDUCTIONS)}, got {reduce!r}"
        )
    if mat1.layout is not sparse_csr or isinstance(mat2, SparseTensor):
        raise NotImplementedError(
            "mm(): with reduce= a matrix of layout sparse_csr is multiplied by a dense one, got layouts "
            f"{mat1.layout} and {mat2.layout}"
        )
    if reduce == "sum":
        return matmul(mat1, mat2, "mm")
    _check_sizes(mat1, mat2, "mm")
    rows, columns = as_coo(mat1)._where
    terms = mat2.index_select(0, columns) * mat1._stored.unsqueeze(1)
    start = terms.new_zeros((mat1._shape[0], terms._shape[1]))
    return start.index_reduce(0, rows, terms, reduce, include_self=False)


#: How the terms of a product come together.
REDUCTIONS = ("sum", "mean", "amax", "amin", "prod")


def sspaddmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return ``beta * input + alpha * (mat1 @ mat2)`` of sparse matrices and a dense one, as a sparse one.

    Parameters
    ----------
    input, mat1 : Tensor
        Sparse, (n, p) and (n, m).
    mat2 : Tensor
        Dense, (m, p).
    beta, alpha : number
        Factors.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.eye(2).to_sparse()
    >>> tp.sspaddmm(x, x, tp.ones(2, 2), alpha=3).to_dense()
    tensor([[4., 3.],
            [3., 4.]])
    """
    for name, given in (("input", input), ("mat1", mat1), ("mat2", mat2)):
        check_tensor(given, "sspaddmm", name)
    if not isinstance(input, SparseTensor) or not isinstance(mat1, SparseTensor):
        raise RuntimeError(
            f"sspaddmm(): expected sparse tensors as input and mat1, got layouts {input.layout} and "
            f"{getattr(mat1, 'layout', mat1)}"
        )
    product = matmul(mat1, mat2, "sspaddmm")
    return _added(input, product.to_sparse(layout=input.layout), beta, alpha)


def as_hybrid(product: Any) -> CooTensor:
    """Return a dense matrix as a sparse one that has all of its rows."""
    rows = arange(product.shape[0], dtype=int64, device=product.device).unsqueeze(0)
    return CooTensor.of(rows, product, product._shape, True)


TABLE: dict[str, Callable[..., Any]] = {
    "addmm": addmm,
    "addmv": _addmv,
    "linear": _linear,
    "matmul": matmul,
    "mm": _mm,
    "mv": _mv,
}
