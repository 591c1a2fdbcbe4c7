"""Factorizations of matrices: LU and LDL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...device.dtypes import ALL_DTYPES, int32, int64
from ...dispatch.op_registry import Delegated, Spec, composite, primitive_tuple
from ...dispatch.out_dtypes import exact_out
from ..comparison import is_within
from ..rules import check_tensor
from . import results
from .rules import arange, check_matrix, column, identity, linalg_check_errors, row, where

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["lu", "lu_unpack"]


# --- LU ---------------------------------------------------------------------------------------


@primitive_tuple("A, pivot", results.linalg_lu_factor_ex)
def linalg_lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> Spec:
    """Return the LU factors in one matrix, the pivots, and which pivot is zero, if any.

    Parameters
    ----------
    A : Tensor
        ``(*, m, n)``.
    pivot : bool
        Whether to exchange rows; where a backend supports it not to.
    check_errors : bool
        Whether to raise where a pivot is zero.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linalg.lu_factor_ex(tp.tensor([[0.0, 1.0], [2.0, 3.0]])).LU
    tensor([[2., 3.],
            [0., 1.]])
    """
    check_matrix("linalg.lu_factor_ex", A)
    if check_errors:
        return Delegated(_lu(A, pivot, True, "linalg.lu_factor_ex"))
    *batch, m, n = A._shape
    lead = tuple(batch)
    return Spec(
        (A, pivot), outputs=((A._shape, A.dtype), ((*lead, min(m, n)), int32), (lead, int32))
    )


def _lu(A: Any, pivot: bool, check: bool, name: str) -> results.linalg_lu_factor_ex:
    check_matrix(name, A)
    LU: Any
    LU, pivots, info = linalg_lu_factor_ex(A, pivot=pivot)
    if check:
        linalg_check_errors(
            info,
            name,
            "U[{0},{0}] is zero and using it on lu_solve would result in a division by zero. If "
            "you "
            "still want to perform the factorization, call linalg.lu(A, pivot) or "
            "linalg.lu_factor_ex(A, pivot)",
        )
    return results.linalg_lu_factor_ex(LU, pivots, info)


@composite(name="linalg_lu_factor", outputs="LU, pivots", method=False)
def linalg_lu_factor(A: Tensor, *, pivot: bool = True) -> results.linalg_lu_factor:
    """Return the LU factors in one matrix, and the pivots, as ``linalg.lu_solve`` takes them.

    Raises
    ------
    RuntimeError
        If a pivot is zero.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linalg.lu_factor(tp.tensor([[0.0, 1.0], [2.0, 3.0]])).pivots
    tensor([2, 2], dtype=tensorplug.int32)
    """
    LU, pivots, _ = _lu(A, pivot, True, "linalg.lu_factor")
    return results.linalg_lu_factor(LU, pivots)


@composite(outputs="*")
def lu(input: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """Return (LU, pivots), and info if asked for; ``linalg.lu_factor`` is its newer name.

    Examples
    --------
    >>> import tensorplug as tp
    >>> LU, pivots = tp.lu(tp.tensor([[0.0, 1.0], [2.0, 3.0]]))
    >>> pivots.tolist()
    [2, 2]
    """
    LU, pivots, info = _lu(input, pivot, not get_infos, "lu")
    return (LU, pivots, info) if get_infos else (LU, pivots)


def unit_lower(LU: Any) -> Any:
    """Return L of the LU factors in one matrix ``(*, m, n)``: ``(*, m, min(m, n))``."""
    m, n = LU._shape[-2:]
    k = min(m, n)
    return LU.narrow(-1, 0, k).tril(-1) + identity(m, LU).narrow(-1, 0, k)


def upper_of(LU: Any) -> Any:
    """Return U of the LU factors in one matrix ``(*, m, n)``: ``(*, min(m, n), n)``."""
    return LU.narrow(-2, 0, min(LU._shape[-2:])).triu()


def _canonical_pivots(pivots: Any, m: int) -> tuple[Any, int]:
    if not pivots._shape or pivots._shape[-1] > m:
        raise RuntimeError(
            f"pivots_to_permutation: expected at most {m} pivots, got shape {list(pivots._shape)}"
        )
    return pivots, m


@composite(rule=_canonical_pivots, name="pivots_to_permutation", method=False)
def pivots_to_permutation(pivots: Tensor, m: int) -> Tensor:
    """Return the order of m rows after the exchanges that LAPACK's pivots name.

    Row i of the result was row ``permutation[i]``.
    """
    indices = arange(m, pivots, pivots.dtype)
    order: Any = indices.expand((*pivots._shape[:-1], m))
    for i in range(pivots._shape[-1]):
        other = pivots.narrow(-1, i, 1) - 1
        here = order.narrow(-1, i, 1)
        there = order.gather(-1, other.to(_int64()))
        order = where(indices == i, there, where(indices == other, here, order))
    return order


def _int64() -> Any:
    return int64


def permutation_matrix(LU: Any, pivots: Any) -> Any:
    """Return P ``(*, m, m)`` with P L U = A."""
    m = LU._shape[-2]
    order = pivots_to_permutation(pivots, m)
    indices = arange(m, pivots, pivots.dtype)
    # Column i of P has its 1 in row order[i].
    return (column(indices) == row(order)).to(LU.dtype)


@composite(name="linalg_lu", outputs="P, L, U", method=False)
def linalg_lu(A: Tensor, *, pivot: bool = True) -> results.linalg_lu:
    """Return a permutation P, unit lower triangular L and upper triangular U with P L U = A.

    Parameters
    ----------
    A : Tensor
        ``(*, m, n)``; with k = min(m, n), L is ``(*, m, k)`` and U ``(*, k, n)``.
    pivot : bool
        Whether to exchange rows; P is empty otherwise.

    Examples
    --------
    >>> import tensorplug as tp
    >>> P, L, U = tp.linalg.lu(tp.tensor([[0.0, 1.0], [2.0, 3.0]]))
    >>> P @ L @ U
    tensor([[0., 1.],
            [2., 3.]])
    """
    LU, pivots, _ = _lu(A, pivot, False, "linalg.lu")
    P = permutation_matrix(LU.detach(), pivots) if pivot else LU.new_empty((0,))
    return results.linalg_lu(P, unit_lower(LU), upper_of(LU))


def _canonical_unpack(
    LU_data: Any, LU_pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Any, ...]:
    check_matrix("lu_unpack", LU_data, "LU_data", integers=True)
    check_tensor(LU_pivots, "lu_unpack", "LU_pivots")
    if unpack_pivots:
        if LU_pivots._key.dtype is not int32:
            raise RuntimeError(
                "lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype, got "
                f"{LU_pivots.dtype.name}; use the pivots that linalg.lu_factor returns"
            )
        rows = LU_data._shape[-2]
        *batch, count = LU_pivots._shape or (rows + 1,)
        if tuple(batch) != LU_data._shape[:-2] or count > rows:
            raise RuntimeError(
                f"lu_unpack: LU_pivots are expected to be up to {rows} for each matrix of "
                f"{list(LU_data._shape)}, got shape {list(LU_pivots._shape)}"
            )
        # Of all samples of a vmap at once there is no telling.
        known = not (LU_pivots._key.is_meta or LU_pivots._batched)
        if known and not is_within(LU_pivots, 1, rows):
            raise RuntimeError(
                "lu_unpack: the elements of LU_pivots must be between 1 and LU.size(-2). Got "
                f"{LU_pivots!r} for {rows} rows"
            )
        LU_pivots = LU_pivots.view(LU_pivots._shape)  # of other pivots the check says nothing
    return LU_data, LU_pivots, bool(unpack_data), bool(unpack_pivots)


@composite(rule=_canonical_unpack, outputs=results.lu_unpack, method=False)
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> results.lu_unpack:
    """Return P, L and U from what ``linalg.lu_factor`` returns; what is not asked for is empty.

    Examples
    --------
    >>> import tensorplug as tp
    >>> P, L, U = tp.lu_unpack(*tp.linalg.lu_factor(tp.tensor([[0.0, 1.0], [2.0, 3.0]])))
    >>> U
    tensor([[2., 3.],
            [0., 1.]])
    """
    empty: Any = LU_data.new_empty((0,))
    return results.lu_unpack(
        permutation_matrix(LU_data.detach(), LU_pivots) if unpack_pivots else empty,
        unit_lower(LU_data) if unpack_data else empty,
        upper_of(LU_data) if unpack_data else empty,
    )


# --- LDL --------------------------------------------------------------------------------------


@primitive_tuple("A, hermitian", results.linalg_ldl_factor_ex)
def linalg_ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> Spec:
    """Return L D L^T of symmetric (L D L^H of Hermitian) matrices, the pivots, and info.

    Parameters
    ----------
    A : Tensor
        ``(*, n, n)``; only the lower triangle is read.
    hermitian : bool
        Whether complex matrices are Hermitian rather than symmetric.
    check_errors : bool
        Whether to raise where D is singular.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linalg.ldl_factor_ex(tp.tensor([[2.0, 0.0], [0.0, 3.0]])).LD
    tensor([[2., 0.],
            [0., 3.]])
    """
    check_matrix("linalg.ldl_factor_ex", A, square=True)
    if check_errors:
        return Delegated(_ldl(A, hermitian, True, "linalg.ldl_factor_ex"))
    shape = A._shape
    return Spec(
        (A, hermitian),
        outputs=((shape, A.dtype), (shape[:-1], int32), (shape[:-2], int32)),
    )


def _ldl(A: Any, hermitian: bool, check: bool, name: str) -> results.linalg_ldl_factor_ex:
    check_matrix(name, A, square=True)
    LD, pivots, info = linalg_ldl_factor_ex(A, hermitian=hermitian)
    if check:
        linalg_check_errors(
            info, name, "The diagonal element {} of D is zero, so that D is singular."
        )
    return results.linalg_ldl_factor_ex(LD, pivots, info)


@composite(name="linalg_ldl_factor", outputs="LD, pivots", method=False)
def linalg_ldl_factor(A: Tensor, *, hermitian: bool = False) -> results.linalg_ldl_factor:
    """Return L D L^T of symmetric matrices, and the pivots, as ``linalg.ldl_solve`` takes them.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linalg.ldl_factor(tp.tensor([[2.0, 0.0], [0.0, 3.0]])).LD
    tensor([[2., 0.],
            [0., 3.]])
    """
    LD, pivots, _ = _ldl(A, hermitian, True, "linalg.ldl_factor")
    return results.linalg_ldl_factor(LD, pivots)


exact_out(lu, others=ALL_DTYPES)
exact_out(
    linalg_lu_factor_ex,
    linalg_lu_factor,
    linalg_lu,
    lu_unpack,
    linalg_ldl_factor_ex,
    linalg_ldl_factor,
)
