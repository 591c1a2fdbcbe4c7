"""Systems of equations whose matrix is triangular, or was factored before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...device.dtypes import INTEGER, int32
from ...dispatch.op_registry import Delegated, Spec, composite, primitive
from ...dispatch.out_dtypes import exact_out, names_results
from ...tensor.predicates import all_samples
from ...tensor.shapes import broadcast_shapes
from ..matmul.products import matmul
from ..rules import cast
from . import results
from .lu import permutation_matrix
from .rules import (
    SINGULAR,
    adjoint,
    broadcast_batches,
    check_factor_inputs,
    check_matrix,
    check_same_dtype,
    identity_like,
    linalg_check_errors,
    transpose,
    where,
)

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["cholesky_inverse", "cholesky_solve", "lu_solve", "triangular_solve"]


# --- triangular and factored ------------------------------------------------------------------


@primitive("A, B, upper, unitriangular", method=False)
def linalg_solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Spec:
    """Return X with A X = B, where A is triangular; the other triangle of `A` is not read.

    Parameters
    ----------
    A : Tensor
        ``(*, n, n)``.
    B : Tensor
        ``(*, n, k)``, or ``(*, k, n)`` with ``left=False``; it is converted to A's dtype.
    upper : bool
        Whether A is upper triangular.
    left : bool
        Whether A stands left of X.
    unitriangular : bool
        Whether the diagonal of `A` counts as 1.

    Examples
    --------
    >>> import tensorplug as tp
    >>> A = tp.tensor([[2.0, 0.0], [1.0, 1.0]])
    >>> tp.linalg.solve_triangular(A, tp.tensor([[2.0], [3.0]]), upper=False)
    tensor([[1.],
            [2.]])
    """
    name = "linalg.solve_triangular"
    check_matrix(name, A, square=True)
    check_matrix(name, B, "B", integers=True)
    if B._key.dtype.category <= A._key.dtype.category and B._key.dtype is not A._key.dtype:
        B = cast(B, A._key.dtype)  # as torch writes it into memory of A's dtype
        return Delegated(solve_triangular_side(A, B, upper, left, unitriangular))
    check_same_dtype(name, A, B)
    check_factor_inputs(name, A, B, left)
    if not left:
        return Delegated(solve_triangular_side(A, B, upper, False, unitriangular))
    A, B = broadcast_batches(A, B)
    return Spec((A, B, upper, unitriangular), B._shape, B.dtype)


def solve_triangular_side(
    A: Any, B: Any, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:
    """Return the solution of A X = B or X A = B."""
    if left:
        return _solve_triangular(A, B, upper, unitriangular)
    return transpose(_solve_triangular(transpose(A), transpose(B), not upper, unitriangular))


def _solve_triangular(A: Any, B: Any, upper: bool, unitriangular: bool) -> Any:
    return linalg_solve_triangular(A, B, upper=upper, unitriangular=unitriangular)


@composite(outputs="solution, cloned_coefficient")
def triangular_solve(
    b: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> results.triangular_solve:
    """Return X with A X = b, and a copy of A; ``linalg.solve_triangular`` is its newer name.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.triangular_solve(tp.tensor([[4.0]]), tp.tensor([[2.0]])).solution
    tensor([[2.]])
    """
    name = "triangular_solve"
    check_matrix(name, A, square=True)
    check_matrix(name, b, "b")
    check_same_dtype(name, A, b, "A", "b")
    check_factor_inputs(name, A, b, True)
    A, b = broadcast_batches(A, b)
    matrix = _swap(A) if transpose else A
    solution = _solve_triangular(matrix, b, upper != transpose, unitriangular)
    return results.triangular_solve(solution, A.clone())


_swap = transpose


def _check_lu_solve(name: str, LU: Any, pivots: Any, B: Any, left: bool) -> None:
    check_matrix(name, LU, "LU", square=True)
    check_matrix(name, B, "B")
    check_same_dtype(name, LU, B, "LU", "B")
    if pivots._key.dtype is not int32:
        raise RuntimeError(
            f"{name}: Expected the pivots of dtype int32, as linalg.lu_factor returns them, got "
            f"{pivots.dtype.name}"
        )
    if pivots._shape != LU._shape[:-1]:
        raise RuntimeError(
            f"{name}: Number of pivots per batch should be same as the dimension of the matrix, "
            "got "
            f"{list(pivots._shape)} for {list(LU._shape)}"
        )
    check_factor_inputs(name, LU, B, left)
    broadcast_shapes(LU._shape[:-2], B._shape[:-2])


def _canonical_lu_solve(
    LU: Any, pivots: Any, B: Any, *, left: bool = True, adjoint: bool = False
) -> tuple[Any, ...]:
    _check_lu_solve("linalg.lu_solve", LU, pivots, B, left)
    return LU, pivots, B, bool(left), bool(adjoint)


@composite(name="linalg_lu_solve", rule=_canonical_lu_solve, method=False)
def linalg_lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """Return X with A X = B, from what ``linalg.lu_factor(A)`` returned.

    Parameters
    ----------
    LU, pivots : Tensor
        ``(*, n, n)`` and ``(*, n)``.
    B : Tensor
        ``(*, n, k)``, or ``(*, k, n)`` with ``left=False``.
    left : bool
        Whether A stands left of X.
    adjoint : bool
        Whether to take A^H for A.

    Examples
    --------
    >>> import tensorplug as tp
    >>> LU, pivots = tp.linalg.lu_factor(tp.tensor([[0.0, 1.0], [2.0, 0.0]]))
    >>> tp.linalg.lu_solve(LU, pivots, tp.tensor([[3.0], [4.0]]))
    tensor([[2.],
            [3.]])
    """
    P = permutation_matrix(LU.detach(), pivots)
    LU, B = broadcast_batches(LU, B)
    if not left:
        # X A = B is A^H X^H = B^H.
        B, adjoint = adjoint_of(B), not adjoint
    if adjoint:
        # A^H = U^H L^H P^T
        Y = _solve_triangular(adjoint_of(LU), B, False, False)
        X = matmul(P, _solve_triangular(adjoint_of(LU), Y, True, True))
    else:
        Y = _solve_triangular(LU, matmul(transpose(P), B), False, True)
        X = _solve_triangular(LU, Y, True, False)
    return X if left else adjoint_of(X).contiguous()


adjoint_of = adjoint


@composite()
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """Return X with A X = b, from A's LU factors; ``linalg.lu_solve`` is its newer name.

    Examples
    --------
    >>> import tensorplug as tp
    >>> LU, pivots = tp.linalg.lu_factor(tp.tensor([[2.0]]))
    >>> tp.lu_solve(tp.tensor([[4.0]]), LU, pivots)
    tensor([[2.]])
    """
    _check_lu_solve("lu_solve", LU_data, LU_pivots, b, True)
    solution: Tensor = linalg_lu_solve(LU_data, LU_pivots, b)
    return solution


@composite()
def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """Return X with A X = B, from the Cholesky factor of A.

    Parameters
    ----------
    B : Tensor
        ``(*, n, k)``.
    L : Tensor
        ``(*, n, n)`` with L L^H = A, or L^H L = A if `upper`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.cholesky_solve(tp.tensor([[8.0]]), tp.tensor([[2.0]]))
    tensor([[2.]])
    """
    name = "cholesky_solve"
    check_matrix(name, B, "B")
    check_matrix(name, L, "L", square=True)
    check_same_dtype(name, L, B, "L", "B")
    check_factor_inputs(name, L, B, True)
    L, B = broadcast_batches(L, B)
    first, second = (adjoint(L), L) if upper else (L, adjoint(L))
    return _solve_triangular(second, _solve_triangular(first, B, False, False), True, False)


@composite()
def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """Return the inverse of A from its Cholesky factor.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.cholesky_inverse(tp.tensor([[2.0]]))
    tensor([[0.2500]])
    """
    check_matrix("cholesky_inverse", L, "L", square=True)
    diagonal: Any = L.detach().diagonal(0, -2, -1)
    if diagonal.is_meta or not all_samples(diagonal).all():
        leading: Any = (diagonal != 0).to(int32).cumprod(-1).sum(-1)
        info = where(leading == diagonal._shape[-1], 0, leading + 1)
        linalg_check_errors(info, "cholesky_inverse", SINGULAR)
    return cholesky_solve(identity_like(L), L, upper)


@primitive("LD, pivots, B, hermitian", method=False)
def linalg_ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Spec:
    """Return X with A X = B, from what ``linalg.ldl_factor(A)`` returned.

    Parameters
    ----------
    LD, pivots : Tensor
        ``(*, n, n)`` and ``(*, n)``.
    B : Tensor
        ``(*, n, k)``.
    hermitian : bool
        As given to ``linalg.ldl_factor``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> LD, pivots = tp.linalg.ldl_factor(tp.tensor([[2.0]]))
    >>> tp.linalg.ldl_solve(LD, pivots, tp.tensor([[4.0]]))
    tensor([[2.]])
    """
    name = "linalg.ldl_solve"
    check_matrix(name, LD, "LD", square=True)
    check_matrix(name, B, "B")
    check_same_dtype(name, LD, B, "LD", "B")
    check_factor_inputs(name, LD, B, True)
    LD, B = broadcast_batches(LD, B)
    if pivots.dtype.category != INTEGER:
        raise RuntimeError(
            f"linalg.ldl_solve: Expected pivots to be integers. Got {pivots.dtype.name}"
        )
    if pivots._shape != LD._shape[:-1]:
        pivots = pivots.expand(LD._shape[:-1])
    return Spec((LD, pivots, B, hermitian), B._shape, B.dtype)


names_results(cholesky_solve, cholesky_inverse)
exact_out(linalg_solve_triangular, triangular_solve, linalg_lu_solve, lu_solve, linalg_ldl_solve)
