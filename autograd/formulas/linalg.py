"""Derivatives of factorizations and of solutions of equations.

For Cholesky, QR and LU: Murray, "Differentiation of the Cholesky decomposition" (2016); Walter and
Lehmann, "Algorithmic differentiation of linear algebra functions" (2010); de Hoog, Anderssen and
Lukas,
"Differentiation of matrix functionals using triangular factorization" (2011), all carried over to
complex matrices.

Derivatives of eigenvalues, singular values and functions of matrices.

Boeddeker et al., "On the computation of complex-valued gradients with application to statistically
optimum beamforming" (2017) for eigenvectors; Townsend, "Differentiating the singular value
decomposition" (2016) and Wan and Zhang, "Automatic differentiation for complex valued SVD" (2019).
"""

from __future__ import annotations

import math
from typing import Any

from tensorplug.core.device.dtypes import finfo
from tensorplug.core.dispatch.layers import note_hidden
from tensorplug.core.ops.creation.creation_like import zeros_like
from tensorplug.core.ops.linalg.functions import linalg_cross, matrix_exp, permutation_sign
from tensorplug.core.ops.linalg.lu import (
    linalg_lu_factor_ex,
    permutation_matrix,
    unit_lower,
    upper_of,
)
from tensorplug.core.ops.linalg.rules import adjoint, column, concatenate, conjugate, row, where
from tensorplug.core.ops.linalg.solvers import linalg_inv_ex, linalg_solve_ex
from tensorplug.core.ops.linalg.spectra import linalg_pinv, linalg_svd
from tensorplug.core.ops.linalg.triangular import linalg_lu_solve, solve_triangular_side
from tensorplug.core.ops.norms import norm_slopes
from tensorplug.core.tensor.predicates import all_samples, any_in_samples
from tensorplug.core.tensor.shapes import Shape

from ..engine.derivatives import derivative, not_differentiable
from ..forward.tangents import tangent
from ..grad_mode import is_grad_enabled
from ..vmap.vmap_rules import shared_rule
from .reductions import unsqueezed
from .shape import fitted


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
            "The derivative of linalg.qr depends on Q, which mode='r' does not compute; use "
            "mode='reduced'"
        )
    if mode == "complete" and m > n:
        raise RuntimeError(
            "linalg.qr: The QR decomposition is not differentiable when mode='complete' and "
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


def _unpacked(g_L: Any, g_U: Any, LU_data: Any, unpack_data: bool) -> Any:
    if not unpack_data:
        return zeros_like(LU_data)
    m, n = LU_data._shape[-2:]
    k = min(m, n)
    first = g_L.narrow(-2, 0, k).tril(-1) + g_U.narrow(-1, 0, k).triu()
    if m < n:
        return concatenate([first, g_U.narrow(-1, k, n - k)], -1)
    if m > n:
        return concatenate([first, g_L.narrow(-2, k, m - k)], -2)
    return first


def _triangular(
    g: Any, A: Any, result: Any, upper: bool, unitriangular: bool, needs_A: bool
) -> list[Any]:
    g_B = solve_triangular_side(adjoint(A), g, not upper, unitriangular=unitriangular)
    if not needs_A:
        return [None, g_B]
    g_A = -g_B @ adjoint(result)
    offset = 1 if unitriangular else 0
    return [g_A.triu(offset) if upper else g_A.tril(-offset), g_B]


def _least_squares_input(g_solution: Any, g_residuals: Any, A: Any, B: Any, solution: Any) -> Any:
    P = linalg_pinv(A)
    gradient = pseudoinverse_gradient(g_solution @ adjoint(B), A, P)
    if g_residuals._shape != (*B._shape[:-2], B._shape[-1]):
        return gradient  # there are none
    return gradient - _residual_slope(g_residuals, A, B, solution) @ adjoint(solution)


def _least_squares_right(g_solution: Any, g_residuals: Any, A: Any, B: Any, solution: Any) -> Any:
    gradient = adjoint(linalg_pinv(A)) @ g_solution
    if g_residuals._shape != (*B._shape[:-2], B._shape[-1]):
        return gradient
    return gradient + _residual_slope(g_residuals, A, B, solution)


def _residual_slope(g_residuals: Any, A: Any, B: Any, solution: Any) -> Any:
    """Return the gradient of ``B - A @ solution``, whose columns' sums of squares are the residuals.

    That the solution changes with A and B changes nothing: it makes them least.
    """
    return (B - A @ solution) * (2 * row(g_residuals))


def pseudoinverse_gradient(g: Any, A: Any, result: Any) -> Any:
    """Return the gradient of A from that of its pseudoinverse, where A's rank is constant.

    Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems
    whose variables separate" (1973).
    """
    g, P = g.to(A.dtype), result.to(A.dtype)  # autocast may have lowered the last product
    Ph, gh = adjoint(P), adjoint(g)
    from_columns = gh @ (P @ Ph)
    from_rows = (Ph @ P) @ gh
    return (
        (from_columns - A @ (P @ from_columns)) + (from_rows - (from_rows @ P) @ A) - Ph @ (g @ Ph)
    )


def _quotient(numerator: Any, differences: Any) -> Any:
    """Return the quotients; for a difference of 0, 0 where the numerator is 0, too, and else NaN.

    Equal eigenvalues do not matter where nothing asks which vector belongs to which. What is masked
    depends on the differences, so that the rest is linear in the numerator: its derivative is right.
    """
    equal = differences == 0
    quotients = (numerator / differences.masked_fill(equal, 1)).masked_fill(equal, 0)
    return quotients.masked_fill(equal & (numerator != 0), math.nan)


def _off_diagonal(X: Any) -> Any:
    return X - X.diagonal(0, -2, -1).diag_embed()


def _check_phases(name: str, vectors: str, slopes: Any, like: Any = None) -> None:
    """Raise RuntimeError where a loss depends on the phases of complex vectors, which are left to chance.

    The imaginary parts of `slopes` are its derivatives by the phases, those of `like` tell how large its
    terms are. The bounds are torch's. Nothing is known of tensors without data, nor of those whose class
    computes their ops.
    """
    key = all_samples(slopes)._key
    if key.is_meta or key.intercepts:
        note_hidden("a check of phases")
        return
    bound: Any = 1e-2 if like is None else 1e-2 + 1e-2 * like.detach().imag.abs()
    if any_in_samples(slopes.detach().imag.abs() > bound):
        raise RuntimeError(
            f"{name}: The {vectors} in the complex case are specified up to multiplication by e^{{i phi}}. "
            "The specified loss function depends on this quantity, so it is ill-defined; make it of what "
            "the phases leave as it is, such as absolute values or projectors"
        )


def _is_blank(g: Any) -> bool:
    """Return whether a gradient is known to be zeros, as that of what a loss does not use is."""
    if g.requires_grad or g._batched or g._key.is_meta or g._key.intercepts:
        return False
    return not bool(g.any())


def _eigh(g_eigenvalues: Any, g_eigenvectors: Any, eigenvalues: Any, eigenvectors: Any) -> Any:
    V = eigenvectors
    mixed = adjoint(V) @ g_eigenvectors
    if V.dtype.is_complex:
        _check_phases("linalg_eigh_backward", "eigenvectors", mixed.diagonal(0, -2, -1))
    mixed = _off_diagonal(mixed)
    inner = _quotient(mixed, row(eigenvalues) - column(eigenvalues))
    return V @ ((inner + g_eigenvalues.to(V.dtype).diag_embed()) @ adjoint(V))


def _svdvals(g: Any, A: Any) -> Any:
    U, _, Vh = linalg_svd(A, False)
    return (U * row(g.to(U.dtype))) @ Vh


def _eig(
    g_eigenvalues: Any, g_eigenvectors: Any, A_dtype: Any, eigenvalues: Any, eigenvectors: Any
) -> Any:
    V = eigenvectors
    Vh = adjoint(V)
    if _is_blank(g_eigenvectors):
        result = linalg_solve_ex(Vh, column(g_eigenvalues) * Vh)[0]
        return result if A_dtype.is_complex else result.real
    mixed = Vh @ g_eigenvectors
    _check_phases("linalg_eig_backward", "eigenvectors", mixed.diagonal(0, -2, -1))
    # The eigenvectors keep norm 1.
    mixed = mixed - (Vh @ V) * row(mixed.diagonal(0, -2, -1).real)
    differences = conjugate(row(eigenvalues) - column(eigenvalues))
    inner = _quotient(_off_diagonal(mixed), differences) + g_eigenvalues.diag_embed()
    result = linalg_solve_ex(Vh, inner @ Vh)[0]
    return result if A_dtype.is_complex else result.real


def _eigh_tangent(t: Any, eigenvalues: Any, eigenvectors: Any) -> tuple[Any, Any]:
    V = eigenvectors
    inner = adjoint(V) @ (t @ V)
    turned = _quotient(_off_diagonal(inner), row(eigenvalues) - column(eigenvalues))
    return inner.diagonal(0, -2, -1).real, V @ turned


def _eig_tangent(t: Any, eigenvalues: Any, eigenvectors: Any) -> tuple[Any, Any]:
    V = eigenvectors
    inner = linalg_solve_ex(V, t.to(V.dtype) @ V)[0]
    turned = V @ _quotient(_off_diagonal(inner), row(eigenvalues) - column(eigenvalues))
    # The eigenvectors keep norm 1.
    stretched = (V._conj() * turned).sum(-2, True).real
    return inner.diagonal(0, -2, -1), turned - V * stretched


def _svd(g_U: Any, g_S: Any, g_Vh: Any, U: Any, S: Any, Vh: Any) -> Any:
    m, n, k = U._shape[-2], Vh._shape[-1], S._shape[-1]
    # Of full matrices, only the first k vectors are determined.
    U, g_U = U.narrow(-1, 0, k), g_U.narrow(-1, 0, k)
    Vh, g_Vh = Vh.narrow(-2, 0, k), g_Vh.narrow(-2, 0, k)
    of_u = _skew(adjoint(U) @ g_U)
    of_v = _skew(Vh @ adjoint(g_Vh))
    squares = S * S
    differences = row(squares) - column(squares)
    inner = _quotient(_off_diagonal(of_u), differences) * row(S)
    inner = inner + column(S) * _quotient(_off_diagonal(of_v), differences)
    inner = inner + g_S.to(U.dtype).diag_embed()
    if U.dtype.is_complex:
        # A common phase of both vectors leaves A as it is, that of one does not.
        of_both = of_v.diagonal(0, -2, -1)
        _check_phases(
            "svd_backward", "singular vectors", of_u.diagonal(0, -2, -1) + of_both, of_both
        )
        phases = _quotient(of_u.diagonal(0, -2, -1), 2 * S)
        inner = inner + phases.diag_embed()
    result = U @ inner
    if m > k:
        scaled = _quotient(g_U, row(S))
        result = result + scaled - U @ (adjoint(U) @ scaled)
    result = result @ Vh
    if n > k:
        scaled = _quotient(g_Vh, column(S))
        result = result + U @ (scaled - (scaled @ adjoint(Vh)) @ Vh)
    return result


def _svd_tangent(t: Any, U: Any, S: Any, Vh: Any) -> tuple[Any, Any, Any]:
    m, n, k = U._shape[-2], Vh._shape[-1], S._shape[-1]
    whole_left, whole_right = U, Vh
    U, Vh = U.narrow(-1, 0, k), Vh.narrow(-2, 0, k)
    left, right = t @ adjoint(Vh), adjoint(U) @ t
    inner = right @ adjoint(Vh)
    squares = S * S
    differences = row(squares) - column(squares)
    between = _off_diagonal(inner)
    turned_left = U @ _quotient(_symmetric(between * row(S)), differences)
    turned_right = -_quotient(_symmetric(between * column(S)), differences) @ Vh
    diagonal = inner.diagonal(0, -2, -1)
    if U.dtype.is_complex:
        turned_left = turned_left + U * row(_quotient(1j * diagonal.imag, S))
        diagonal = diagonal.real
    if m > k:
        turned_left = turned_left + _quotient(left - U @ inner, row(S))
    if n > k:
        turned_right = turned_right + _quotient(right - inner @ Vh, column(S))
    # Of full matrices, only the first k vectors are determined.
    rest_left, rest_right = (
        whole_left.narrow(-1, k, whole_left._shape[-1] - k),
        whole_right.narrow(-2, k, whole_right._shape[-2] - k),
    )
    return (
        concatenate([turned_left, rest_left * 0], -1),
        diagonal,
        concatenate([turned_right, rest_right * 0], -2),
    )


def _symmetric(X: Any) -> Any:
    return X + adjoint(X)


def _skew(X: Any) -> Any:
    return X - adjoint(X)


def _determinant(g: Any, A: Any) -> Any:
    """Return g times the conjugate cofactors, through a nonsingular matrix that is next to `A`."""
    LU, pivots, _ = linalg_lu_factor_ex(A)
    diagonal = LU.diagonal(0, -2, -1)
    nudge = where(diagonal == 0, finfo(A.dtype).eps, 0.0).to(A.dtype)
    LU = LU + nudge.diag_embed()
    value = (diagonal + nudge).prod(-1) * permutation_sign(pivots, LU)
    scale = g * conjugate(value)
    n = A._shape[-1]
    right = scale.reshape((*scale._shape, 1)).expand((*scale._shape, n)).diag_embed()
    return linalg_lu_solve(LU, pivots, right, left=True, adjoint=True)


def _log_determinant(g_sign: Any, g_logabsdet: Any, A: Any, sign: Any) -> Any:
    scale = g_logabsdet
    if A.dtype.is_complex:
        scale = scale - 1j * (conjugate(g_sign) * sign).imag
    inverse = linalg_inv_ex(A)[0]
    return adjoint(inverse) * scale.reshape((*scale._shape, 1, 1))


def _exponential(g: Any, input: Any) -> Any:
    """Return the adjoint of the exponential's derivative, a block of a larger exponential.

    Najfeld and Havel, "Derivatives of the matrix exponential and their computation" (1995).
    """
    n = input._shape[-1]
    Ah = adjoint(input)
    above = concatenate([Ah, g], -1)
    below = concatenate([Ah * 0, Ah], -1)
    return matrix_exp(concatenate([above, below], -2)).narrow(-2, 0, n).narrow(-1, n, n)


def _vector_norm(
    g: Any, x: Any, result: Any, x_shape: Shape, ord: float, dim: Shape, keepdim: bool
) -> Any:
    g = unsqueezed(g, x_shape, dim, keepdim)
    return norm_slopes(g, x, unsqueezed(result, x_shape, dim, keepdim), ord, dim)


def _solve(g_result: Any, A: Any, result: Any, needs_A: bool) -> list[Any]:
    g_B = linalg_solve_ex(adjoint(A), g_result)[0]
    return [-g_B @ adjoint(result) if needs_A else None, g_B]


def _solve_lu(g_result: Any, A: Any, LU: Any, pivots: Any, result: Any, needs_A: bool) -> list[Any]:
    if is_grad_enabled() or A._tangents is not None:
        return _solve(g_result, A, result, needs_A)  # the factors tell nothing of how A changes
    g_B = linalg_lu_solve(LU, pivots, g_result, adjoint=True)
    return [-g_B @ adjoint(result) if needs_A else None, g_B]


DERIVATIVES = [
    derivative("linalg_vector_norm", x=_vector_norm),
    derivative("linalg_cholesky_ex", A=_cholesky),
    derivative(
        "linalg_cross",
        input=lambda g, other, dim, input_shape, input_dtype: fitted(
            linalg_cross(conjugate(other), g, dim=dim), input_shape, input_dtype
        ),
        other=lambda g, input, dim, other_shape, other_dtype: fitted(
            linalg_cross(g, conjugate(input), dim=dim), other_shape, other_dtype
        ),
    ),
    derivative("linalg_qr", A=_qr),
    derivative("linalg_lu_factor_ex", A=_lu),
    derivative("lu_unpack", LU_data=_unpacked),
    derivative("linalg_solve_ex", joint={"A, B": _solve}),
    derivative("linalg_solve_lu", joint={"A, B": _solve_lu}),
    derivative(
        "linalg_inv_ex",
        A=lambda g_inverse, inverse: -(adjoint(inverse) @ (g_inverse @ adjoint(inverse))),
    ),
    derivative("linalg_solve_triangular", joint={"A, B": _triangular}),
    derivative(
        "linalg_lstsq",
        A=_least_squares_input,
        B=_least_squares_right,
    ),
    *not_differentiable(
        "geqrf", "linalg_ldl_factor_ex", "linalg_ldl_solve", "pivots_to_permutation"
    ),
    derivative("linalg_eigh", A=_eigh),
    derivative("linalg_eig", A=_eig),
    derivative("linalg_svd", A=_svd),
    derivative("linalg_svdvals", A=_svdvals),
    derivative(
        "linalg_pinv",
        A=pseudoinverse_gradient,
        atol=None,
        rtol=None,
    ),
    derivative("linalg_det", A=_determinant),
    derivative("linalg_slogdet", A=_log_determinant),
    derivative("matrix_exp", input=_exponential),
]


TANGENTS = [
    tangent("linalg_eigh", A=_eigh_tangent),
    tangent("linalg_eig", A=_eig_tangent),
    tangent("linalg_svd", A=_svd_tangent),
]


VMAP_RULES = [
    shared_rule("linalg_qr", "linalg_qr"),
    shared_rule(
        "as_is",
        "linalg_cholesky_ex",
        "geqrf",
        "matrix_exp",
        "linalg_lu_factor_ex",
        "linalg_ldl_factor_ex",
        "linalg_eigh",
        "linalg_eig",
        "linalg_svd",
    ),
    shared_rule("leading", "linalg_solve_ex", "linalg_solve_triangular"),
    # These look whether all went well, which needs a number.
    shared_rule(
        "whole_as_is",
        "cholesky",
        "inverse",
        "linalg_check_errors",
        "linalg_cholesky",
        "linalg_inv",
        "linalg_inv_ex",
        "linalg_ldl_factor",
        "linalg_lu_factor",
        "lu",
    ),
    shared_rule("linalg_solve", "linalg_solve"),
    shared_rule("whole_loop", "linalg_tensorsolve"),
]
