"""Systems of equations and inverses."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..dtypes import finfo, int32, int64
from ..operators import Spec, composite, primitive, primitive_tuple
from ..shapes import normalize_dims
from . import linalg_results as results
from .linalg_factors import permutation_matrix
from .linalg_rules import (
    adjoint,
    broadcast_batches,
    check_factor_inputs,
    check_info,
    check_matrix,
    check_same_dtype,
    column,
    identity_like,
    transpose,
)
from .products import matmul
from .rules import check_tensor

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = ["cholesky_inverse", "cholesky_solve", "inverse", "lu_solve", "triangular_solve"]


@primitive_tuple("A, B", "result, info", name="solve")
def _solve(A: Tensor, B: Tensor) -> Spec:
    """Return X with A X = B for matrices of equal batches, and LAPACK's info."""
    return Spec((A, B), outputs=((B._shape, B.dtype), (A._shape[:-2], int32)))


@composite(name="linalg_solve_ex", outputs="result, info", method=False)
def linalg_solve_ex(
    A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False
) -> results.linalg_solve_ex:
    """Return X with A X = B, and in ``info`` the first zero pivot of a singular matrix.

    Parameters are those of :func:`linalg_solve`; `check_errors` says whether to raise where a
    matrix is singular.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linalg.solve_ex(tp.tensor([[2.0]]), tp.tensor([[4.0]])).result
    tensor([[2.]])
    """
    return _solve_checked(A, B, left, check_errors, "linalg.solve_ex")


def _solve_checked(A: Any, B: Any, left: bool, check: bool, name: str) -> results.linalg_solve_ex:
    check_matrix(name, A, square=True)
    check_tensor(B, name, "B")
    check_same_dtype(name, A, B)
    vector = is_vector(A, B)
    if vector:
        if not left:
            raise RuntimeError(
                f"{name}: Vector broadcasting of the left hand side is not supported for "
                "left=False; "
                f"pass B as a matrix, got {list(B._shape)}"
            )
        B = column(B)
    if len(B._shape) < 2:
        raise RuntimeError(f"{name}: B must have at least 1 dimension, got shape {list(B._shape)}")
    check_factor_inputs(name, A, B, left)
    A, B = broadcast_batches(A, B)
    if not left:
        A, B = transpose(A), transpose(B)
    X, info = _solve(A, B)
    if check:
        check_info(info, name, "The solver failed because the input matrix is singular.")
    if vector:
        X = X.reshape(X._shape[:-1])
    elif not left:
        X = transpose(X)
    return results.linalg_solve_ex(X, info)


def is_vector(A: Any, B: Any) -> bool:
    """Return whether B is one vector, or one for each matrix of A."""
    return len(B._shape) == 1 or (len(A._shape) - 1 == len(B._shape) and B._shape == A._shape[:-1])


@composite(name="linalg_solve", method=False)
def linalg_solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """Return X with A X = B.

    Parameters
    ----------
    A : Tensor
        Invertible matrices ``(*, n, n)``.
    B : Tensor
        ``(*, n, k)``, or vectors ``(n,)`` or ``(*, n)``, with the batch dimensions of `A`.
    left : bool
        Whether A stands left of X; else X A = B is solved, with B ``(*, k, n)``.

    Raises
    ------
    LinAlgError
        If a matrix is singular.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linalg.solve(tp.tensor([[2.0, 0.0], [0.0, 4.0]]), tp.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    return _solve_checked(A, B, left, True, "linalg.solve").result


@composite(name="linalg_inv_ex", outputs="inverse, info", method=False)
def linalg_inv_ex(A: Tensor, *, check_errors: bool = False) -> results.linalg_inv_ex:
    """Return the inverse, and in ``info`` the first zero pivot of a singular matrix.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linalg.inv_ex(tp.tensor([[2.0]])).inverse
    tensor([[0.5000]])
    """
    return results.linalg_inv_ex(*_inverse(A, check_errors, "linalg.inv_ex"))


@composite(name="matrix_inverse", outputs="inverse, info", method=False)
def matrix_inverse(A: Tensor) -> tuple[Tensor, Tensor]:
    """Return the inverse and LAPACK's info; what the public inverses call."""
    return _solve(A, identity_like(A))  # type: ignore[return-value]


def _inverse(A: Any, check: bool, name: str) -> tuple[Any, Any]:
    check_matrix(name, A, square=True)
    inverse_, info = matrix_inverse(A)
    if check:
        check_info(
            info,
            name,
            "The diagonal element {} is zero, the inversion could not be completed because the "
            "input "
            "matrix is singular.",
        )
    return inverse_, info


@composite(name="linalg_inv", method=False)
def linalg_inv(A: Tensor) -> Tensor:
    """Return the inverse of matrices ``(*, n, n)``; to solve equations, use ``linalg.solve``.

    Raises
    ------
    LinAlgError
        If a matrix is singular.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linalg.inv(tp.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return _inverse(A, True, "linalg.inv")[0]  # type: ignore[no-any-return]


@composite()
def inverse(input: Tensor) -> Tensor:
    """Return the inverse of square matrices; an alias of ``linalg.inv``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.inverse(tp.tensor([[2.0]]))
    tensor([[0.5000]])
    """
    return _inverse(input, True, "inverse")[0]  # type: ignore[no-any-return]


# --- triangular and factored ------------------------------------------------------------------


@primitive("A, B, upper, unitriangular", method=False, name="solve_triangular")
def _solve_triangular(A: Tensor, B: Tensor, upper: bool, unitriangular: bool) -> Spec:
    """Return X with A X = B for triangular matrices of equal batches."""
    return Spec((A, B, upper, unitriangular), B._shape, B.dtype)


@composite(name="linalg_solve_triangular", method=False)
def linalg_solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """Return X with A X = B, where A is triangular; the other triangle of `A` is not read.

    Parameters
    ----------
    A : Tensor
        ``(*, n, n)``.
    B : Tensor
        ``(*, n, k)``, or ``(*, k, n)`` with ``left=False``.
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
    check_matrix(name, B, "B")
    check_same_dtype(name, A, B)
    check_factor_inputs(name, A, B, left)
    A, B = broadcast_batches(A, B)
    return solve_triangular_side(A, B, upper, left, unitriangular)  # type: ignore[no-any-return]


def solve_triangular_side(
    A: Any, B: Any, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:
    """Return the solution of A X = B or X A = B for matrices of equal batches."""
    if left:
        return _solve_triangular(A, B, upper, unitriangular)
    return transpose(_solve_triangular(transpose(A), transpose(B), not upper, unitriangular))


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


@composite(name="linalg_lu_solve", method=False)
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
    return _lu_solve("linalg.lu_solve", LU, pivots, B, left, adjoint)  # type: ignore[no-any-return]


def _lu_solve(name: str, LU: Any, pivots: Any, B: Any, left: bool, conjugated: bool) -> Any:
    check_matrix(name, LU, "LU", square=True)
    check_matrix(name, B, "B")
    check_same_dtype(name, LU, B, "LU", "B")
    if pivots._kind.dtype is not int32:
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
    P = permutation_matrix(LU.detach(), pivots)
    LU, B = broadcast_batches(LU, B)
    if not left:
        # X A = B is A^H X^H = B^H.
        B, conjugated = adjoint_of(B), not conjugated
    if conjugated:
        # A^H = U^H L^H P^T
        Y = _solve_triangular(adjoint_of(LU), B, False, False)
        X = matmul(P, _solve_triangular(adjoint_of(LU), Y, True, True))
    else:
        Y = _solve_triangular(LU, matmul(transpose(P), B), False, True)
        X = _solve_triangular(LU, Y, True, False)
    return X if left else adjoint_of(X)


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
    return _lu_solve("lu_solve", LU_data, LU_pivots, b, True, False)  # type: ignore[no-any-return]


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
    return cholesky_solve(identity_like(L), L, upper)


@primitive("LD, pivots, B, hermitian", method=False, name="ldl_solve")
def _ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, hermitian: bool) -> Spec:
    """Return X with A X = B from LDL factors of equal batches."""
    return Spec((LD, pivots, B, hermitian), B._shape, B.dtype)


@composite(name="linalg_ldl_solve", method=False)
def linalg_ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
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
    return _ldl_solve(LD, pivots.expand(LD._shape[:-1]), B, hermitian)


# --- tensors as matrices ----------------------------------------------------------------------


@composite(name="linalg_tensorinv", method=False)
def linalg_tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """Return the inverse of `A` as a map by ``tensordot``.

    Parameters
    ----------
    A : Tensor
        The product of its first `ind` sizes equals that of the others.
    ind : int
        How many dimensions come first.

    Examples
    --------
    >>> import tensorplug as tp
    >>> A = tp.eye(6).reshape(6, 2, 3)
    >>> tp.linalg.tensorinv(A, ind=1).shape
    Size([2, 3, 6])
    """
    check_tensor(A, "linalg.tensorinv", "A")
    if ind <= 0:
        raise RuntimeError(
            f"linalg.tensorinv: Expected a strictly positive integer for ind, got {ind}"
        )
    first, last = A._shape[:ind], A._shape[ind:]
    rows, columns = math.prod(first), math.prod(last)
    if rows != columns:
        raise RuntimeError(
            "linalg.tensorinv: Expected self to satisfy the requirement prod(self.shape[ind:]) == "
            f"prod(self.shape[:ind]), but got {columns} != {rows}"
        )
    flat: Any = A.reshape(rows, columns)
    return linalg_inv(flat).reshape(last + first)


@composite(name="linalg_tensorsolve", method=False)
def linalg_tensorsolve(A: Tensor, B: Tensor, dims: Any = None) -> Tensor:
    """Return X with ``tensordot(A, X, X.ndim) == B``.

    Parameters
    ----------
    A : Tensor
        Its dimensions are those of `B`, then those of X.
    B : Tensor
    dims : sequence of int, optional
        Dimensions of `A` to move to the end first.

    Examples
    --------
    >>> import tensorplug as tp
    >>> A = tp.eye(6).reshape(2, 3, 6)
    >>> tp.linalg.tensorsolve(A, tp.ones(2, 3))
    tensor([1., 1., 1., 1., 1., 1.])
    """
    check_tensor(A, "linalg.tensorsolve", "A")
    check_tensor(B, "linalg.tensorsolve", "B")
    if dims is not None:
        last = [d % len(A._shape) for d in ((dims,) if isinstance(dims, int) else dims)]
        normalize_dims(last, len(A._shape), "linalg.tensorsolve")
        A = A.permute(*[d for d in range(len(A._shape)) if d not in last], *last)
    shape = A._shape[len(B._shape) :]
    size = math.prod(shape)
    if size != B.numel():
        raise RuntimeError(
            "linalg.tensorsolve: Expected self to satisfy the requirement "
            "prod(self.shape[other.ndim:])"
            f" == prod(self.shape[:other.ndim]), but got {size} != {B.numel()}"
        )
    flat: Any = A.reshape(B.numel(), size)
    return linalg_solve(flat, B.reshape(B.numel())).reshape(shape)


# --- least squares ----------------------------------------------------------------------------


@primitive_tuple(
    "A, B, rcond, driver", "solution, residuals, rank, singular_values", name="least_squares"
)
def _least_squares(A: Tensor, B: Tensor, rcond: float, driver: str) -> Spec:
    """Return the solutions of min |A X - B| for matrices of equal batches."""
    *batch, m, n = A._shape
    lead = tuple(batch)
    k = B._shape[-1]
    real = A.dtype.to_real()
    ranked = driver != "gels"
    valued = driver in ("gelsd", "gelss")
    # Whether there are residuals depends on the ranks.
    residuals = ((*lead, k) if driver == "gels" else None) if m > n else (0,)
    return Spec(
        (A, B, rcond, driver),
        outputs=(
            ((*lead, n, k), A.dtype),
            (residuals, real),
            (lead if ranked else (0,), int64),
            ((*lead, min(m, n)) if valued else (0,), real),
        ),
    )


@composite(name="linalg_lstsq", outputs="solution, residuals, rank, singular_values", method=False)
def linalg_lstsq(
    A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None
) -> results.linalg_lstsq:
    """Return the X that makes the Frobenius norm of A X - B smallest.

    Parameters
    ----------
    A : Tensor
        ``(*, m, n)``.
    B : Tensor
        ``(*, m, k)``, or vectors ``(*, m)``.
    rcond : float, optional
        Singular values below `rcond` times the largest count as zero; by default max(m, n) times
        the dtype's epsilon.
    driver : {"gelsy", "gels", "gelsd", "gelss"}, optional
        The LAPACK routine; "gels" assumes full rank.

    Returns
    -------
    linalg_lstsq
        ``solution`` ``(*, n, k)``; ``residuals``, the sums of squares ``(*, k)`` where m > n and
        every matrix has full rank; ``rank`` and ``singular_values`` where the driver finds them.
        What there is not is empty.

    Examples
    --------
    >>> import tensorplug as tp
    >>> A = tp.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> tp.linalg.lstsq(A, tp.tensor([[1.0], [3.0], [5.0]])).solution
    tensor([[1.0000],
            [2.0000]])
    """
    name = "linalg.lstsq"
    check_matrix(name, A)
    check_tensor(B, name, "B")
    check_same_dtype(name, A, B)
    if driver is None:
        driver = "gelsy"
    if driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(
            f"{name}: parameter driver should be one of (gels, gelsy, gelsd, gelss), got {driver!r}"
        )
    vector = is_vector(A, B)
    if vector:
        B = column(B)
    if len(B._shape) < 2 or B._shape[-2] != A._shape[-2]:
        raise RuntimeError(
            f"{name}: input.size(-2) should match other.size(-2), got {list(A._shape)} and "
            f"{list(B._shape)}"
        )
    A, B = broadcast_batches(A, B)
    if rcond is None:
        rcond = finfo(A.dtype).eps * max(A._shape[-2:])
    solution, residuals, rank, values = _least_squares(A, B, float(rcond), driver)
    if vector:
        solution = solution.reshape(solution._shape[:-1])
    return results.linalg_lstsq(solution, residuals, rank, values)
