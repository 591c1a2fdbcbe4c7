"""Factorizations of matrices: Cholesky, QR, LU, LDL, and Householder reflectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..dtypes import int32
from ..operators import Spec, composite, primitive_tuple
from . import linalg_results as results
from .linalg_rules import (
    adjoint,
    arange,
    check_info,
    check_matrix,
    check_same_dtype,
    column,
    conjugate,
    identity,
    row,
    where,
)
from .rules import check_tensor

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = ["cholesky", "geqrf", "lu", "lu_unpack", "orgqr", "ormqr", "qr"]


# --- Cholesky ---------------------------------------------------------------------------------


@primitive_tuple("A", "L, info", name="cholesky_factor")
def _cholesky_factor(A: Tensor) -> Spec:
    """Return lower triangular L with L L^H = A, and LAPACK's info.

    Only the lower triangle of `A` is read. ``info`` is the order of the first leading minor that
    is not positive, or 0.
    """
    dtype = A.dtype
    return Spec((A,), outputs=((A._shape, dtype), (A._shape[:-2], int32)))


@composite(name="linalg_cholesky_ex", outputs="L, info", method=False)
def linalg_cholesky_ex(
    A: Tensor, *, upper: bool = False, check_errors: bool = False
) -> results.linalg_cholesky_ex:
    """Return the Cholesky factor; ``info`` is the order of the first minor that is not positive.

    Parameters
    ----------
    A : Tensor
        Hermitian positive-definite matrices ``(*, n, n)``; only one triangle is read.
    upper : bool
        Whether to return the upper triangular factor U with U^H U = A.
    check_errors : bool
        Whether to raise where ``info`` is not 0.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linalg.cholesky_ex(tp.tensor([[4.0, 2.0], [2.0, 5.0]])).L
    tensor([[2., 0.],
            [1., 2.]])
    """
    return _cholesky(A, upper, check_errors, "linalg.cholesky_ex")


def _cholesky(A: Any, upper: bool, check: bool, name: str) -> results.linalg_cholesky_ex:
    check_matrix(name, A, square=True)
    L, info = _cholesky_factor(adjoint(A) if upper else A)
    if check:
        check_info(
            info,
            name,
            "The factorization could not be completed because the input is not positive-definite "
            "(the "
            "leading minor of order {} is not positive-definite).",
        )
    return results.linalg_cholesky_ex(adjoint(L) if upper else L, info)


@composite(name="linalg_cholesky", method=False)
def linalg_cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """Return the Cholesky factor L of Hermitian positive-definite matrices, with L L^H = A.

    Parameters
    ----------
    A : Tensor
        ``(*, n, n)``.
    upper : bool
        Whether to return L^H instead, computed from the upper triangle of `A`.

    Raises
    ------
    LinAlgError
        If a matrix is not positive-definite.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linalg.cholesky(tp.tensor([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    return _cholesky(A, upper, True, "linalg.cholesky").L


@composite()
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """Return the Cholesky factor; ``linalg.cholesky`` is its newer name.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.cholesky(tp.tensor([[4.0]]))
    tensor([[2.]])
    """
    return _cholesky(input, upper, True, "cholesky").L


# --- QR ---------------------------------------------------------------------------------------


@primitive_tuple("A, mode", "Q, R", name="qr_factor")
def _qr_factor(A: Tensor, mode: str) -> Spec:
    """Return the QR factors in mode "reduced", "complete" or "r"; what ``linalg.qr`` calls."""
    *batch, m, n = A._shape
    k = min(m, n)
    q = (m, m) if mode == "complete" else (m, k)
    r = (m, n) if mode == "complete" else (k, n)
    q_shape = (0,) if mode == "r" else (*batch, *q)
    return Spec((A, mode), outputs=((q_shape, A.dtype), ((*batch, *r), A.dtype)))


@composite(name="linalg_qr", outputs="Q, R", method=False)
def linalg_qr(A: Tensor, mode: str = "reduced") -> results.linalg_qr:
    """Return Q with orthonormal columns and upper triangular R, with Q R = A.

    Parameters
    ----------
    A : Tensor
        ``(*, m, n)``; with k = min(m, n).
    mode : {"reduced", "complete", "r"}
        Q is ``(*, m, k)`` and R ``(*, k, n)``; or ``(*, m, m)`` and ``(*, m, n)``; or Q is left
        empty.

    Notes
    -----
    Differentiable in mode "reduced", and "complete" where m <= n, while the first k columns of `A`
    are linearly independent.

    Examples
    --------
    >>> import tensorplug as tp
    >>> Q, R = tp.linalg.qr(tp.tensor([[3.0, 1.0], [4.0, 2.0]]))
    >>> Q @ R
    tensor([[3.0000, 1.0000],
            [4.0000, 2.0000]])
    """
    check_matrix("linalg.qr", A)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"linalg.qr: received unrecognized mode {mode!r} but expected one of 'reduced' "
            "(default), "
            "'r', or 'complete'"
        )
    return results.linalg_qr(*_qr_factor(A, mode))


@composite(outputs="Q, R")
def qr(input: Tensor, some: bool = True) -> results.qr:
    """Return the QR factors; ``linalg.qr`` is its newer name.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.qr(tp.ones(3, 2)).R.shape
    Size([2, 2])
    """
    check_matrix("qr", input)
    return results.qr(*_qr_factor(input, "reduced" if some else "complete"))


@primitive_tuple("input", "a, tau", name="householder_qr")
def _householder_qr(input: Tensor) -> Spec:
    """Return LAPACK's compact form of a QR factorization; what ``geqrf`` calls."""
    *batch, m, n = input._shape
    tau = (*batch, min(m, n))
    return Spec((input,), outputs=((input._shape, input.dtype), (tau, input.dtype)))


@composite(outputs="a, tau")
def geqrf(input: Tensor) -> results.geqrf:
    """Return a QR factorization in LAPACK's compact form, for ``linalg.householder_product``.

    Returns
    -------
    geqrf
        ``a`` ``(*, m, n)`` holds R, and below it the reflectors; ``tau`` ``(*, min(m, n))`` their
        factors.

    Examples
    --------
    >>> import tensorplug as tp
    >>> a, tau = tp.geqrf(tp.ones(3, 2))
    >>> tau.shape
    Size([2])
    """
    check_matrix("geqrf", input)
    return results.geqrf(*_householder_qr(input))


@composite(name="linalg_householder_product", method=False)
def linalg_householder_product(A: Tensor, tau: Tensor) -> Tensor:
    """Return the first n columns of the product of Householder reflectors I - tau_i v_i v_i^H.

    Parameters
    ----------
    A : Tensor
        ``(*, m, n)`` with m >= n; v_i is column i below the diagonal, with 1 on it.
    tau : Tensor
        ``(*, k)`` with k <= n.

    Examples
    --------
    >>> import tensorplug as tp
    >>> a, tau = tp.geqrf(tp.tensor([[3.0], [4.0]]))
    >>> tp.linalg.householder_product(a, tau)
    tensor([[-0.6000],
            [-0.8000]])
    """
    name = "linalg.householder_product"
    check_matrix(name, A)
    check_tensor(tau, name, "tau")
    check_same_dtype(name, tau, A, "tau", "input")
    m, n = A._shape[-2:]
    if m < n:
        raise RuntimeError(
            f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1], got {m} "
            f"and {n}"
        )
    if not tau._shape or tau._shape[-1] > n:
        raise RuntimeError(
            f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1], got {n} and "
            f"{list(tau._shape)}"
        )
    if tau._shape[:-1] != A._shape[:-2]:
        raise RuntimeError(
            f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got "
            f"{list(tau._shape[:-1])} and {list(A._shape[:-2])}"
        )
    return _reflect(_columns(A, tau), tau, identity(m, A).narrow(-1, 0, n).expand(A._shape))  # type: ignore[no-any-return]


def _columns(A: Any, tau: Any) -> list[Any]:
    """Return the reflectors' vectors as columns."""
    unit = A.tril(-1) + identity(A._shape[-2], A).narrow(-1, 0, A._shape[-1])
    return [unit.narrow(-1, i, 1) for i in range(tau._shape[-1])]


def _reflect(
    columns: list[Any], tau: Any, X: Any, *, reverse: bool = True, conj: bool = False
) -> Any:
    """Return the product of the reflectors, the last (or first) one applied first, times `X`."""
    numbers = range(len(columns))
    for i in reversed(numbers) if reverse else numbers:
        v = columns[i]
        factor = column(tau.narrow(-1, i, 1))
        X = X - (conjugate(factor) if conj else factor) * v @ (adjoint(v) @ X)
    return X


@composite()
def orgqr(input: Tensor, tau: Tensor) -> Tensor:
    """Return the product of Householder reflectors; an alias of ``linalg.householder_product``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.orgqr(*tp.geqrf(tp.tensor([[3.0], [4.0]])))
    tensor([[-0.6000],
            [-0.8000]])
    """
    return linalg_householder_product(input, tau)


@composite()
def ormqr(
    input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False
) -> Tensor:
    """Return ``Q @ other``, where Q is the full product of Householder reflectors.

    Parameters
    ----------
    input, tau : Tensor
        ``(*, m, k)`` and ``(*, k)``, as ``geqrf`` returns them.
    other : Tensor
        ``(*, m, n)``, or ``(*, n, m)`` with ``left=False``.
    left : bool
        Whether Q stands left of `other`.
    transpose : bool
        Whether to use Q^H.

    Examples
    --------
    >>> import tensorplug as tp
    >>> a, tau = tp.geqrf(tp.tensor([[3.0], [4.0]]))
    >>> tp.ormqr(a, tau, tp.tensor([[3.0], [4.0]]), transpose=True)
    tensor([[-5.],
            [ 0.]])
    """
    check_matrix("ormqr", input, "input")
    check_matrix("ormqr", other, "other")
    m = input._shape[-2]
    if other._shape[-2 if left else -1] != m:
        raise RuntimeError(
            f"ormqr: other.shape[{-2 if left else -1}] must be equal to input.shape[-2], got "
            f"{other._shape[-2 if left else -1]} and {m}"
        )
    columns = _columns(input, tau)
    if left:
        return _reflect(columns, tau, other, reverse=not transpose, conj=transpose)  # type: ignore[no-any-return]
    # X Q = (Q^H X^H)^H
    product = _reflect(columns, tau, adjoint(other), reverse=transpose, conj=not transpose)
    return adjoint(product)  # type: ignore[no-any-return]


# --- LU ---------------------------------------------------------------------------------------


@primitive_tuple("A, pivot", "LU, pivots, info", name="lu_factor")
def _lu_factor(A: Tensor, pivot: bool) -> Spec:
    """Return L and U in one matrix, LAPACK's pivots (from 1), and its info."""
    *batch, m, n = A._shape
    lead = tuple(batch)
    return Spec(
        (A, pivot), outputs=((A._shape, A.dtype), ((*lead, min(m, n)), int32), (lead, int32))
    )


@composite(name="linalg_lu_factor_ex", outputs="LU, pivots, info", method=False)
def linalg_lu_factor_ex(
    A: Tensor, *, pivot: bool = True, check_errors: bool = False
) -> results.linalg_lu_factor_ex:
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
    return _lu(A, pivot, check_errors, "linalg.lu_factor_ex")


def _lu(A: Any, pivot: bool, check: bool, name: str) -> results.linalg_lu_factor_ex:
    check_matrix(name, A)
    LU, pivots, info = _lu_factor(A, pivot)
    if check:
        check_info(
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


@composite()
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


@composite(name="pivots_to_permutation", method=False)
def pivots_to_permutation(pivots: Tensor, m: int) -> Tensor:
    """Return the order of m rows after the exchanges that LAPACK's pivots name.

    Row i of the result was row ``permutation[i]``.
    """
    places = arange(m, pivots, pivots.dtype)
    order: Any = places.expand((*pivots._shape[:-1], m))
    for i in range(pivots._shape[-1]):
        other = pivots.narrow(-1, i, 1) - 1
        here = order.narrow(-1, i, 1)
        there = order.gather(-1, other.to(_int64()))
        order = where(places == i, there, where(places == other, here, order))
    return order  # type: ignore[no-any-return]


def _int64() -> Any:
    from ..dtypes import int64

    return int64


def permutation_matrix(LU: Any, pivots: Any) -> Any:
    """Return P ``(*, m, m)`` with P L U = A."""
    m = LU._shape[-2]
    order = pivots_to_permutation(pivots, m)
    places = arange(m, pivots, pivots.dtype)
    # Column i of P has its 1 in row order[i].
    return (column(places) == row(order)).to(LU.dtype)


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


@composite(outputs="P, L, U", method=False)
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
    check_matrix("lu_unpack", LU_data, "LU_data")
    if unpack_pivots and LU_pivots._kind.dtype is not int32:
        raise RuntimeError(
            "lu_unpack: LU_pivots is expected to be a contiguous tensor of int32 dtype, got "
            f"{LU_pivots.dtype.name}; use the pivots that linalg.lu_factor returns"
        )
    empty: Any = LU_data.new_empty((0,))
    return results.lu_unpack(
        permutation_matrix(LU_data.detach(), LU_pivots) if unpack_pivots else empty,
        unit_lower(LU_data) if unpack_data else empty,
        upper_of(LU_data) if unpack_data else empty,
    )


# --- LDL --------------------------------------------------------------------------------------


@primitive_tuple("A, hermitian", "LD, pivots, info", name="ldl_factor")
def _ldl_factor(A: Tensor, hermitian: bool) -> Spec:
    """Return the Bunch-Kaufman factors of symmetric matrices as LAPACK stores them."""
    shape = A._shape
    return Spec(
        (A, hermitian),
        outputs=((shape, A.dtype), (shape[:-1], int32), (shape[:-2], int32)),
    )


@composite(name="linalg_ldl_factor_ex", outputs="LD, pivots, info", method=False)
def linalg_ldl_factor_ex(
    A: Tensor, *, hermitian: bool = False, check_errors: bool = False
) -> results.linalg_ldl_factor_ex:
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
    return _ldl(A, hermitian, check_errors, "linalg.ldl_factor_ex")


def _ldl(A: Any, hermitian: bool, check: bool, name: str) -> results.linalg_ldl_factor_ex:
    check_matrix(name, A, square=True)
    LD, pivots, info = _ldl_factor(A, hermitian)
    if check:
        check_info(info, name, "The diagonal element {} of D is zero, so that D is singular.")
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
