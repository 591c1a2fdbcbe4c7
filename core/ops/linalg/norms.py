"""Norms of vectors and matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...device.dtypes import FLOATING, DType, bfloat16, float16, float32
from ...device.scalars import Real
from ...dispatch.op_registry import composite
from ...dispatch.out_dtypes import exact_out, names_results
from ...tensor.shapes import normalize_dims, one_or_several
from ..norms import canonical_norm, in_dtype, vector_norm
from ..reductions.reductions import amax, amin, sum
from ..rules import cast, check_tensor
from .rules import check_floating, check_matrix, where
from .solvers import linalg_inv_ex
from .spectra import linalg_svdvals

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__: list[str] = []

_HALVES = (float16, bfloat16)


def _check_vector_norm(name: str, x: Any, ord: Any, dtype: DType | None) -> None:
    """Refuse what only ``torch.linalg`` refuses."""
    check_tensor(x, name, "x")
    if dtype is None and type(ord) in (int, float) and x._key.dtype.category == FLOATING:
        return
    check_floating(name, x, half=True)
    if isinstance(ord, bool) or not isinstance(ord, (int, float)):
        raise TypeError(f"{name}: ord must be a number, got {ord!r}")


def vector_norm_of(
    name: str, x: Any, ord: Any, dim: Any, keepdim: bool, dtype: DType | None
) -> Any:
    """Return the vector norm after checks of what only ``torch.linalg`` refuses."""
    _check_vector_norm(name, x, ord, dtype)
    return vector_norm(name, x, ord, dim, keepdim, dtype)


def _canonical_vector_norm(
    x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Any:
    _check_vector_norm("linalg.vector_norm", x, ord, dtype)
    return canonical_norm("linalg.vector_norm", x, ord, dim, keepdim, dtype)


@composite(
    "x, ord, dim, keepdim",
    rule=_canonical_vector_norm,
    name="linalg_vector_norm",
    method=False,
)
def linalg_vector_norm(
    x: Tensor,
    ord: Real = 2,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """Return the norm of the elements over the dimensions `dim`, taken as one vector.

    Parameters
    ----------
    x : Tensor
        Floating-point or complex.
    ord : float
        p of the p-norm; infinity for the largest magnitude, its negative for the smallest, 0 for
        the number of nonzero elements.
    dim : int or sequence of int, optional
        By default all.
    keepdim : bool
        Whether the reduced dimensions stay, with size 1.
    dtype : DType, optional
        Convert to this dtype first.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linalg.vector_norm(tp.tensor([3.0, 4.0]))
    tensor(5.)
    """
    dims: Any = dim
    wide = cast(x, float32) if x.dtype in _HALVES else x
    if ord == 0:
        total = sum(cast(wide != 0, wide.dtype.to_real()), dims, keepdim)
    elif math.isinf(ord):
        total = (amax if ord > 0 else amin)(wide.abs(), dims, keepdim) if dims else wide.abs()
    elif ord == 1:
        total = sum(wide.abs(), dims, keepdim) if dims else wide.abs()
    elif ord == 2:
        squares = (wide * wide._conj()).real if wide.is_complex() else wide * wide
        total = sum(squares, dims, keepdim).sqrt() if dims else wide.abs()
    else:
        powers = wide.abs().pow(ord)
        total = (sum(powers, dims, keepdim) if dims else powers).pow(1 / ord)
    return cast(total, x.dtype.to_real())


@composite(name="linalg_matrix_norm", method=False)
def linalg_matrix_norm(
    A: Tensor,
    ord: float | str = "fro",
    dim: Sequence[int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """Return the norm of the matrices in the two dimensions `dim`.

    Parameters
    ----------
    A : Tensor
        At least two dimensions.
    ord : {"fro", "nuc", 1, -1, 2, -2, inf, -inf}
        Frobenius; sum of the singular values; largest or smallest sum of magnitudes of a column
        (1, -1) or of a row (inf, -inf); largest or smallest singular value (2, -2).
    dim : pair of int
    keepdim : bool
    dtype : DType, optional
        Convert to this dtype first.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linalg.matrix_norm(tp.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor(5.)
    """
    return _matrix_norm("linalg.matrix_norm", A, ord, dim, keepdim, dtype)


def _matrix_norm(name: str, A: Any, ord: Any, dim: Any, keepdim: bool, dtype: DType | None) -> Any:
    check_matrix(name, A, half=True)
    try:
        pair = [d % len(A._shape) if -len(A._shape) <= d < len(A._shape) else d for d in dim]
    except TypeError:
        pair = [dim]
    if len(pair) != 2:
        raise RuntimeError(f"{name}: dim must be a 2-tuple of ints. Got {dim}")
    if pair[0] == pair[1] < len(A._shape):
        raise RuntimeError(f"{name}: dims must be different. Got ({dim[0]}, {dim[1]})")
    normalize_dims(pair, len(A._shape), name)
    if ord == "fro" and isinstance(ord, str):
        return vector_norm_of(name, A, 2, pair, keepdim, dtype)
    if isinstance(ord, str) and ord != "nuc":
        raise RuntimeError(f"{name}: Order {ord} not supported.")
    magnitude = None if isinstance(ord, str) else abs(ord)
    if magnitude not in (None, 1, 2, math.inf):
        raise RuntimeError(f"{name}: Order {ord} not supported.")
    if dtype is not None:
        A = in_dtype(name, A, dtype)
    rows, columns = pair
    if ord == "nuc" or magnitude == 2:
        check_matrix(name, A)
        order = [d for d in range(len(A._shape)) if d not in pair] + pair
        values = linalg_svdvals(A.permute(order))
        if ord == "nuc":
            result = values.sum(-1)
        else:
            result = _extreme(values, -1, ord, False)
        if keepdim:
            kept = [1 if d in pair else n for d, n in enumerate(A._shape)]
            result = result.reshape(kept)
        return result
    summed, kept_dim = (rows, columns) if magnitude == 1 else (columns, rows)
    sums = vector_norm_of(name, A, 1, summed, True, None)
    result = _extreme(sums, kept_dim, ord, True)
    if keepdim:
        return result
    return result.reshape([n for d, n in enumerate(A._shape) if d not in pair])


def _extreme(values: Any, dim: int, ord: Any, keepdim: bool) -> Any:
    """Return the largest values, 0 of none; for a negative order the smallest, which must exist."""
    if ord < 0:
        return values.amin(dim, keepdim)
    return values.amax(dim, keepdim) if values._shape[dim] else values.sum(dim, keepdim)


@composite(name="linalg_norm", method=False)
def linalg_norm(
    A: Tensor,
    ord: float | str | None = None,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """Return a vector or matrix norm.

    Parameters
    ----------
    A : Tensor
    ord : number or str, optional
        By default the 2-norm of the elements as one vector. With it, and without `dim`, a 1-d
        tensor has its vector norm and a 2-d one its matrix norm.
    dim : int or pair of int, optional
        One dimension for vector norms, two for matrix norms.
    keepdim : bool
    dtype : DType, optional
        Convert to this dtype first.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linalg.norm(tp.tensor([[3.0, 4.0], [0.0, 0.0]]), ord=1)
    tensor(4.)
    """
    name = "linalg.norm"
    check_tensor(A, name, "A")
    if isinstance(ord, (list, tuple)):
        raise TypeError(
            f"linalg_norm(): argument 'ord' must be Number or str, not {type(ord).__name__}"
        )
    dims = None if dim is None else one_or_several(dim)
    if dims is not None and len(dims) not in (1, 2):
        raise RuntimeError(
            f"{name}: If dim is specified, it must be of length 1 or 2. Got {list(dims)}"
        )
    if ord is None:
        return vector_norm_of(name, A, 2, dims, keepdim, dtype)
    if dims is None:
        if len(A._shape) not in (1, 2):
            raise RuntimeError(
                f"{name}: If dim is not specified but ord is, the input must be 1D or 2D. Got "
                f"{len(A._shape)}D."
            )
        dims = tuple(range(len(A._shape)))
    if len(dims) == 2 or isinstance(ord, str):
        return _matrix_norm("linalg.matrix_norm", A, ord, dims, keepdim, dtype)
    return vector_norm_of(name, A, ord, dims, keepdim, dtype)


@composite(name="linalg_cond", method=False)
def linalg_cond(A: Tensor, p: float | str | None = None) -> Tensor:
    """Return the condition number: the norm of A times that of its inverse.

    Parameters
    ----------
    A : Tensor
        ``(*, m, n)``; square unless `p` is None, 2 or -2.
    p : number or str, optional
        The matrix norm; by default 2.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linalg.cond(tp.tensor([[1.0, 0.0], [0.0, 4.0]]))
    tensor(4.)
    """
    name = "linalg.cond"
    check_matrix(name, A)
    if p is None or (not isinstance(p, str) and abs(p) == 2):
        values: Any = linalg_svdvals(A)
        if not values._shape[-1]:
            return values.sum(-1)
        large, small = values.narrow(-1, 0, 1), values.narrow(-1, values._shape[-1] - 1, 1)
        ratio = small / large if p == -2 else large / small
        return ratio.reshape(values._shape[:-1])
    if p not in ("fro", "nuc") and (isinstance(p, str) or abs(p) not in (1, math.inf)):
        raise RuntimeError(
            f"{name} got an invalid norm type: {p}; use 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2"
        )
    if A.numel() or isinstance(p, str):
        check_matrix(name, A, square=True)
    if not A.numel():
        return A.new_zeros(A._shape[:-2], dtype=A.dtype.to_real())
    inverse, info = linalg_inv_ex(A)
    # What stands in an inverse that failed must not reach the norm, whose kernel may refuse it.
    inverse = where((info != 0)[..., None, None], 0.0, inverse)
    product = _matrix_norm(name, A, p, (-2, -1), False, None) * _matrix_norm(
        name, inverse, p, (-2, -1), False, None
    )
    return where(info != 0, math.inf, product)


names_results(linalg_cond)
exact_out(linalg_vector_norm, linalg_matrix_norm, linalg_norm)
