"""Approximate factors of low rank, by random projections (Halko, Martinsson and Tropp 2011)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..random.random import randn
from .factors import linalg_qr
from .rules import check_matrix
from .spectra import linalg_svd

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["pca_lowrank", "svd_lowrank"]


def _basis(A: Any, q: int, niter: int) -> Any:
    """Return orthonormal columns that nearly span the largest singular directions (algorithm 4.4)."""
    start: Any = randn((A._shape[-1], q), dtype=A.dtype, device=A.device)
    Q = linalg_qr(A @ start)[0]
    for _ in range(niter):
        Q = linalg_qr(A.mH @ Q)[0]
        Q = linalg_qr(A @ Q)[0]
    return Q


def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return U, S and V of an approximation of `A`, or of A - M, of rank `q`.

    Parameters
    ----------
    A : Tensor
        ``(*, m, n)``, float32, float64 or complex.
    q : int, optional
        Slightly more than the rank that is expected; at most min(m, n) count.
    niter : int, optional
        How many steps of subspace iteration sharpen the result.
    M : Tensor, optional
        Broadcasts to the shape of `A`, for example its mean.

    Returns
    -------
    U, S, V : Tensor
        ``(*, m, q)``, ``(*, q)`` and ``(*, n, q)``, so that A is nearly ``U @ diag(S) @ V.mH``.

    Raises
    ------
    ValueError
        If `q` or `niter` does not fit.

    Examples
    --------
    >>> import tensorplug as tp
    >>> A = tp.ones(4, 3)
    >>> U, S, V = tp.svd_lowrank(A, q=1)
    >>> tp.allclose(U @ tp.diag(S) @ V.mH, A, atol=1e-5)
    True
    """
    check_matrix("svd_lowrank", A)
    count = min(6 if q is None else q, *A._shape[-2:])
    return _svd("svd_lowrank", A if M is None else A - M, count, niter)


def _svd(name: str, A: Any, q: int, niter: int | None) -> tuple[Any, Any, Any]:
    steps = 2 if niter is None else niter
    m, n = A._shape[-2:]
    if not 0 <= q <= min(m, n):
        raise ValueError(
            f"{name}(): q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}"
        )
    if steps < 0:
        raise ValueError(f"{name}(): niter(={steps}) must be non-negative integer")
    if m < n:
        V, S, U = _svd(name, A.mH, q, steps)
        return U, S, V
    Q = _basis(A, q, steps)
    U, S, Vh = linalg_svd(Q.mH @ A, full_matrices=False)
    return Q @ U, S, Vh.mH


def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the principal components of rows: :func:`svd_lowrank` of `A` without its mean.

    Parameters
    ----------
    A : Tensor
        ``(*, m, n)``: m samples of n variables.
    q : int, optional
        How many components, by default ``min(6, m, n)``.
    center : bool
        Whether the mean of the rows is taken off.
    niter : int
        As for :func:`svd_lowrank`.

    Returns
    -------
    U, S, V : Tensor
        The columns of V are the directions, ``S**2 / (m - 1)`` their variances.

    Examples
    --------
    >>> import tensorplug as tp
    >>> U, S, V = tp.pca_lowrank(tp.tensor([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]), q=1)
    >>> S
    tensor([2.])
    """
    check_matrix("pca_lowrank", A)
    count = min(6, *A._shape[-2:]) if q is None else q
    return _svd("pca_lowrank", A - A.mean(-2, True) if center else A, count, niter)
