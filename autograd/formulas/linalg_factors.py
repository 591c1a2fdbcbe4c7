"""Derivatives of factorizations and of solutions of equations.

For Cholesky, QR and LU: Murray, "Differentiation of the Cholesky decomposition" (2016); Walter and
Lehmann, "Algorithmic differentiation of linear algebra functions" (2010); de Hoog, Anderssen and
Lukas,
"Differentiation of matrix functionals using triangular factorization" (2011), all carried over to
complex matrices.
"""

from __future__ import annotations

from typing import Any

from tensorplug.core.ops.linalg.lu import permutation_matrix, unit_lower, upper_of
from tensorplug.core.ops.linalg.rules import adjoint, concatenate
from tensorplug.core.ops.linalg.solvers import _solve
from tensorplug.core.ops.linalg.spectra import linalg_pinv
from tensorplug.core.ops.linalg.triangular import solve_triangular_side

from ..derivatives import derivative, not_differentiable


def halve_diagonal(X: Any) -> Any:
    """Return the lower triangle with its diagonal halved."""
    return (X.tril() + X.tril(-1)) * 0.5


def _cholesky(g_L: Any, L: Any) -> Any:
    phi = halve_diagonal(adjoint(L) @ g_L)
    phi = (phi + adjoint(phi)) * 0.5
    right = solve_triangular_side(L, phi, False, left=False)
    return solve_triangular_side(adjoint(L), right, True)


def _qr(g_Q: Any, g_R: Any, A: Any, Q: Any, R: Any, mode: str) -> Any:
    m, n = A._shape[-2:]
    if mode == "r":
        raise RuntimeError(
            "linalg.qr: the derivative of the QR decomposition is not implemented when mode='r', "
            "which "
            "computes no Q; use mode='reduced'"
        )
    if mode == "complete" and m > n:
        raise RuntimeError(
            "linalg.qr: the QR decomposition is not differentiable when mode='complete' and "
            f"nrows > ncols, got {m} rows and {n} columns; use mode='reduced'"
        )
    if m >= n:
        return _square_qr(g_Q, g_R, Q, R)
    # A = [X Y] with X square, R = [U V]: Q U = X, and V = Q^H Y.
    Y = A.narrow(-1, m, n - m)
    g_U, g_V = g_R.narrow(-1, 0, m), g_R.narrow(-1, m, n - m)
    g_X = _square_qr(g_Q + Y @ adjoint(g_V), g_U, Q, R.narrow(-1, 0, m))
    return concatenate([g_X, Q @ g_V], -1)


def _square_qr(g_Q: Any, g_R: Any, Q: Any, R: Any) -> Any:
    M = (g_R @ adjoint(R) - adjoint(Q) @ g_Q).triu()
    symmetric = adjoint(halve_diagonal(adjoint(M)))
    symmetric = symmetric + adjoint(symmetric)
    return solve_triangular_side(adjoint(R), g_Q + Q @ symmetric, False, left=False)


def _lu(g_LU: Any, LU: Any, pivots: Any) -> Any:
    m, n = LU._shape[-2:]
    k = min(m, n)
    P = permutation_matrix(LU, pivots)
    L, U = unit_lower(LU), upper_of(LU)
    g_L, g_U = g_LU.narrow(-1, 0, k).tril(-1), g_LU.narrow(-2, 0, k).triu()
    if m < n:
        # A = P L [U V], and V = L^-1 P^T of the last columns.
        V, g_V = U.narrow(-1, k, n - k), g_U.narrow(-1, k, n - k)
        rest = solve_triangular_side(adjoint(L), g_V, True, unitriangular=True)
        g_L = g_L - (rest @ adjoint(V)).tril(-1)
        first = _square_lu(g_L, g_U.narrow(-1, 0, k), L, U.narrow(-1, 0, k))
        return P @ concatenate([first, rest], -1)
    if m > n:
        # A = P [L; M] U, and M is the last rows of P^T A times U^-1.
        M, g_M = L.narrow(-2, k, m - k), g_L.narrow(-2, k, m - k)
        rest = solve_triangular_side(adjoint(U), g_M, False, left=False)
        g_U = g_U - (adjoint(M) @ rest).triu()
        first = _square_lu(g_L.narrow(-2, 0, k), g_U, L.narrow(-2, 0, k), U)
        return P @ concatenate([first, rest], -2)
    return P @ _square_lu(g_L, g_U, L, U)


def _square_lu(g_L: Any, g_U: Any, L: Any, U: Any) -> Any:
    inner = (adjoint(L) @ g_L).tril(-1) + (g_U @ adjoint(U)).triu()
    right = solve_triangular_side(adjoint(U), inner, False, left=False)
    return solve_triangular_side(adjoint(L), right, True, unitriangular=True)


def _triangular_input(g: Any, A: Any, result: Any, upper: bool, unitriangular: bool) -> Any:
    g_B = solve_triangular_side(adjoint(A), g, not upper, unitriangular=unitriangular)
    g_A = -(g_B @ adjoint(result))
    offset = 1 if unitriangular else 0
    return g_A.triu(offset) if upper else g_A.tril(-offset)


def _least_squares_input(g_solution: Any, A: Any, B: Any) -> Any:
    P = linalg_pinv(A)
    return pseudoinverse_gradient(g_solution @ adjoint(B), A, P)


def pseudoinverse_gradient(g: Any, A: Any, result: Any) -> Any:
    """Return the gradient of A from that of its pseudoinverse, where A's rank is constant.

    Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems
    whose variables separate" (1973).
    """
    P, Ph, gh = result, adjoint(result), adjoint(g)
    from_columns = gh @ (P @ Ph)
    from_rows = (Ph @ P) @ gh
    return (
        (from_columns - A @ (P @ from_columns)) + (from_rows - (from_rows @ P) @ A) - Ph @ (g @ Ph)
    )


DERIVATIVES = [
    derivative("cholesky_factor", A=_cholesky),
    derivative("qr_factor", A=_qr),
    derivative("lu_factor", A=_lu),
    derivative(
        "solve",
        A=lambda g_result, A, result: -(_solve(adjoint(A), g_result)[0] @ adjoint(result)),
        B=lambda g_result, A: _solve(adjoint(A), g_result)[0],
    ),
    derivative(
        "matrix_inverse",
        A=lambda g_inverse, inverse: -(adjoint(inverse) @ (g_inverse @ adjoint(inverse))),
    ),
    derivative(
        "solve_triangular",
        A=_triangular_input,
        B=lambda g, A, upper, unitriangular: solve_triangular_side(
            adjoint(A), g, not upper, unitriangular=unitriangular
        ),
    ),
    derivative(
        "least_squares",
        A=_least_squares_input,
        B=lambda g_solution, A: adjoint(linalg_pinv(A)) @ g_solution,
    ),
    *not_differentiable("householder_qr", "ldl_factor", "ldl_solve", "pivots_to_permutation"),
]
