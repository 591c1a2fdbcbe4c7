"""Factorizations of matrices: Cholesky, QR and Householder reflectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...device.dtypes import int32, scalar_type
from ...dispatch.op_registry import Delegated, Spec, composite, primitive_tuple
from ...dispatch.out_dtypes import exact_out, names_results
from ..rules import check_tensor
from . import results
from .rules import (
    adjoint,
    check_matrix,
    check_same_dtype,
    column,
    conjugate,
    constant_of,
    identity,
    linalg_check_errors,
)

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["cholesky", "geqrf", "orgqr", "ormqr", "qr"]


# --- Cholesky ---------------------------------------------------------------------------------


@primitive_tuple("A", results.linalg_cholesky_ex)
def linalg_cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> Spec:
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
    check_matrix("linalg.cholesky_ex", A, square=True)
    if upper or check_errors:
        return Delegated(_cholesky(A, upper, check_errors, "linalg.cholesky_ex"))
    return Spec((A,), outputs=((A._shape, A.dtype), (A._shape[:-2], int32)))


def _cholesky(A: Any, upper: bool, check: bool, name: str) -> results.linalg_cholesky_ex:
    check_matrix(name, A, square=True)
    L: Any
    L, info = linalg_cholesky_ex(adjoint(A) if upper else A)
    if check:
        linalg_check_errors(
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


@primitive_tuple("A, mode", results.linalg_qr)
def linalg_qr(A: Tensor, mode: str = "reduced") -> Spec:
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
            f"linalg.qr received unrecognized mode {mode!r} but expected one of 'reduced' "
            "(default), "
            "'r', or 'complete'"
        )
    *batch, m, n = A._shape
    k = min(m, n)
    q = (m, m) if mode == "complete" else (m, k)
    r = (m, n) if mode == "complete" else (k, n)
    q_shape = (0,) if mode == "r" else (*batch, *q)
    return Spec((A, mode), outputs=((q_shape, A.dtype), ((*batch, *r), A.dtype)))


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
    return results.qr(*linalg_qr(input, "reduced" if some else "complete"))


@primitive_tuple("input", results.geqrf, method=True)
def geqrf(input: Tensor) -> Spec:
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
    *batch, m, n = input._shape
    tau = (*batch, min(m, n))
    return Spec((input,), outputs=((input._shape, input.dtype), (tau, input.dtype)))


def _canonical_householder_product(A: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
    name = "linalg.householder_product"
    check_matrix(name, A, "input", said="{} must have at least 2 dimensions")
    check_tensor(tau, name, "tau")
    if tau._key.dtype is not A._key.dtype:
        raise RuntimeError(
            f"{name}: tau dtype {scalar_type(tau.dtype)} does not match input dtype "
            f"{scalar_type(A.dtype)}"
        )
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
    return A, tau


@composite(name="linalg_householder_product", rule=_canonical_householder_product, method=False)
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
    m, n = A._shape[-2:]
    unit = identity(m, A).narrow(-1, 0, n).expand(A._shape)
    if not tau._shape[-1]:
        return constant_of(A, unit)
    return _reflect(_columns(A, tau), tau, unit)


def _columns(A: Any, tau: Any) -> list[Any]:
    """Return the reflectors' vectors as columns."""
    count = tau._shape[-1]
    unit = A.narrow(-1, 0, count).tril(-1) + identity(A._shape[-2], A).narrow(-1, 0, count)
    return [unit.narrow(-1, i, 1) for i in range(count)]


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


def _canonical_ormqr(
    input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False
) -> tuple[Any, ...]:
    check_matrix("ormqr", input, "input")
    check_matrix("ormqr", other, "other")
    for tensor, label in ((tau, "tau"), (other, "other")):
        check_same_dtype("torch.ormqr", input, tensor, "input", label)
    for label, batch in (("tau", tau._shape[:-1]), ("other", other._shape[:-2])):
        if batch != input._shape[:-2]:
            raise RuntimeError(
                f"torch.ormqr: Expected batch dimensions of {label} to be equal to input.shape[:-2], but got "
                f"{list(batch)} and input of {list(input._shape)}"
            )
    m = input._shape[-2]
    if other._shape[-2 if left else -1] != m:
        raise RuntimeError(
            f"ormqr: other.shape[{-2 if left else -1}] must be equal to input.shape[-2], got "
            f"{other._shape[-2 if left else -1]} and {m}"
        )
    if tau._shape[-1:] != (min(m, input._shape[-1]),):
        raise RuntimeError(
            "ormqr: tau.shape[-1] must be equal to min(other.shape[-2], input.shape[-1]), got "
            f"tau of {list(tau._shape)} for input of {list(input._shape)}"
        )
    return input, tau, other, bool(left), bool(transpose)


@composite(rule=_canonical_ormqr)
def ormqr(
    input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False
) -> Tensor:
    """Return ``Q @ other``, where Q is the full product of Householder reflectors.

    Parameters
    ----------
    input, tau : Tensor
        ``(*, m, k)`` and ``(*, min(m, k))``, as ``geqrf`` returns them.
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
    columns = _columns(input, tau)
    if left:
        return _reflect(columns, tau, other, reverse=not transpose, conj=transpose)
    # X Q = (Q^H X^H)^H
    product = _reflect(columns, tau, adjoint(other), reverse=transpose, conj=not transpose)
    return adjoint(product).contiguous()


names_results(cholesky, geqrf, linalg_householder_product, orgqr)
exact_out(linalg_cholesky_ex, linalg_cholesky, linalg_qr, qr, ormqr)
