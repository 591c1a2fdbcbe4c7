"""Sums, norms and softmax over the elements that sparse tensors store."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tensorplug.core.device.dtypes import DType, bool_, int64
from tensorplug.core.ops import zeros
from tensorplug.core.ops.rules import check_tensor
from tensorplug.core.tensor.shapes import normalize_dims

from .arithmetic import as_coo, like, unique
from .compressed import CompressedTensor
from .coordinates import CooTensor
from .indexing import _as_index
from .layouts import sparse_csr, title
from .structure import flat_places
from .tensors import SparseTensor


def sum(
    input: Any, dim: Any = None, keepdim: bool = False, dtype: DType | None = None
) -> Any:  # of the module, not Python's
    """Return the sum of a sparse tensor over dimensions, or over all.

    Parameters
    ----------
    input : Tensor
        A sparse tensor.
    dim : int or tuple of int, optional
        The result is sparse if a sparse dimension is left, else dense.
    keepdim : bool
        Keep the dimensions, of size 1.
    dtype : dtype, optional
        Convert to it first.

    Notes
    -----
    A sum over sparse dimensions that leaves others keeps the dtype of integers and of bool, as in
    torch; ``x.sum(dim)`` counts in int64.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
    >>> tp.sparse.sum(x), tp.sparse.sum(x, 1).to_dense()
    (tensor(12.), tensor([3., 9.]))
    """
    check_tensor(input, "sum")
    return _sum(unique(input) if input.dtype is bool_ else input, dim, keepdim, dtype, True)


def _sum(
    input: Any,
    dim: Any = None,
    keepdim: bool = False,
    dtype: DType | None = None,
    keeps_dtype: bool = False,
) -> Any:
    if not isinstance(input, SparseTensor):
        raise RuntimeError(f"sparse.sum(): expected a sparse tensor, got {input.layout}")
    if dtype is not None:
        input = input.to(dtype)
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return input._stored.sum()
    dims = normalize_dims(dim, len(input._shape), "sum")
    if isinstance(input, CompressedTensor) and input._layout is not sparse_csr:
        raise RuntimeError(
            "sum(): Currently the only compressed sparse format supported for sum.dim_IntList is CSR, but "
            f"got layout {title(input._layout)}"
        )
    if isinstance(input, CompressedTensor) and not keepdim:
        raise RuntimeError(
            "sum(): reduction operations on CSR tensors with keepdim=False is unsupported; pass "
            "keepdim=True"
        )
    places = as_coo(input)
    sparse = places.sparse_dim()
    inner = [d - sparse + 1 for d in dims if d >= sparse]
    values = places._stored.sum(inner, keepdim) if inner else places._stored
    left = [d for d in range(sparse) if d not in dims]
    if not (inner or (left and keeps_dtype)) and values.dtype.category <= int64.category:
        values = values.to(int64)
    shape = tuple([1 if d in dims else n for d, n in enumerate(places._shape)])
    if not keepdim:
        shape = tuple([n for d, n in enumerate(places._shape) if d not in dims])
    if not left:
        return values.sum(0).reshape(shape)
    if keepdim:
        where = places._where.clone()
        for d in dims:
            if d < sparse:
                where[d] = 0
    else:
        where = places._where.index_select(0, _as_index(left, places._where))
    coalesced = places._coalesced and len(left) == sparse
    return like(CooTensor.of(where, values, shape, coalesced).coalesce(), input)


def _any(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    if dim is not None:
        raise NotImplementedError("any(): of a sparse tensor over all dimensions")
    return unique(input)._stored.any()


def _norm(
    input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Any:
    if keepdim:
        raise RuntimeError("norm_sparse currently does not support keepdim=True")
    every = tuple(range(len(input._shape)))
    if (
        dim is not None
        and dim != ()
        and tuple(sorted(normalize_dims(dim, len(every), "norm"))) != every
    ):
        raise RuntimeError(
            "norm_sparse currently only supports full reductions, so 'dim' must either be empty or contain "
            f"all dimensions of the input, got {dim}"
        )
    values = unique(input)._stored
    if not isinstance(p, str) and p <= 0:
        raise RuntimeError(f"norm(): of a sparse tensor of a positive order, got {p}")
    return values.reshape(-1).norm(p, dtype=dtype)


def softmax(input: Any, dim: int, *, dtype: DType | None = None) -> Any:
    """Return the softmax along a dimension over the elements that are stored.

    Parameters
    ----------
    input : Tensor
        A sparse tensor; what is not stored counts as minus infinity.
    dim : int
        The dimension.
    dtype : dtype, optional
        Convert to it first.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.sparse_coo_tensor([[0, 0, 1], [0, 2, 1]], [1.0, 1.0, 5.0], (2, 3))
    >>> tp.sparse.softmax(x, 1).to_dense()
    tensor([[0.5000, 0.0000, 0.5000],
            [0.0000, 1.0000, 0.0000]])
    """
    check_tensor(input, "softmax")
    places, groups, count = _grouped(input, dim, dtype, "softmax")
    if groups is None:
        return places._with_values(places._stored.softmax(count))
    shifted, total = _shifted(places._stored, groups, count)
    powers = shifted.exp()
    return places._with_values(powers / total.index_select(0, groups))


def log_softmax(input: Any, dim: int, *, dtype: DType | None = None) -> Any:
    """Return the logarithm of :func:`softmax`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.sparse_coo_tensor([[0, 0, 1], [0, 2, 1]], [1.0, 1.0, 5.0], (2, 3))
    >>> tp.sparse.log_softmax(x, 1).coalesce().values()
    tensor([-0.6931, -0.6931,  0.0000])
    """
    check_tensor(input, "log_softmax")
    places, groups, count = _grouped(input, dim, dtype, "log_softmax")
    if groups is None:
        return places._with_values(places._stored.log_softmax(count))
    shifted, total = _shifted(places._stored, groups, count)
    return places._with_values(shifted - total.index_select(0, groups).log())


def _grouped(input: Any, dim: int, dtype: Any, name: str) -> tuple[CooTensor, Any, int]:
    """Return a coalesced tensor, the group of each value, and how many groups there are.

    Along a dense dimension the group is None, and the number the dimension of the values.
    """
    if not isinstance(input, SparseTensor):
        raise RuntimeError(f"sparse.{name}(): expected a sparse tensor, got {input.layout}")
    if not isinstance(input, CooTensor):
        raise NotImplementedError(
            f"sparse.{name}(): of layout sparse_coo; convert with .to_sparse()"
        )
    places: CooTensor = input.coalesce() if dtype is None else input.to(dtype).coalesce()
    dims = normalize_dims(dim, len(places._shape), name)
    sparse = places.sparse_dim()
    if dims[0] >= sparse:
        return places, None, dims[0] - sparse + 1
    left = [d for d in range(sparse) if d != dims[0]]
    where = places._where.index_select(0, _as_index(left, places._where))
    shape = tuple([places._shape[d] for d in left])
    return places, flat_places(where, shape), math.prod(shape)


def _shifted(values: Any, groups: Any, count: int) -> tuple[Any, Any]:
    """Return values minus the largest of their group, and the sum of exponentials of each group."""
    shape = (count, *values._shape[1:])
    index = groups.reshape((-1, *(1,) * (values.dim() - 1))).expand(values.shape)
    largest = (zeros(shape, dtype=values.dtype, device=values.device) - math.inf).scatter_reduce(
        0, index, values.detach(), "amax"
    )
    shifted = values - largest.index_select(0, groups)
    empty = zeros(shape, dtype=values.dtype, device=values.device)
    return shifted, empty.index_add(0, groups, shifted.exp())


TABLE: dict[str, Callable[..., Any]] = {"any": _any, "norm": _norm, "sum": _sum}
