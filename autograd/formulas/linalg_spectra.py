"""Derivatives of eigenvalues, singular values and functions of matrices.

Boeddeker et al., "On the computation of complex-valued gradients with application to statistically
optimum beamforming" (2017) for eigenvectors; Townsend, "Differentiating the singular value
decomposition" (2016) and Wan and Zhang, "Automatic differentiation for complex valued SVD" (2019).
"""

from __future__ import annotations

from typing import Any

from tensorplug.core.dtypes import finfo
from tensorplug.core.ops.linalg.functions import _matrix_exp, permutation_sign
from tensorplug.core.ops.linalg.lu import linalg_lu_factor_ex
from tensorplug.core.ops.linalg.rules import adjoint, column, concatenate, conjugate, row, where
from tensorplug.core.ops.linalg.solvers import _solve, matrix_inverse
from tensorplug.core.ops.linalg.triangular import _lu_solve

from ..derivatives import derivative
from .linalg_factors import pseudoinverse_gradient


def _quotient(numerator: Any, differences: Any) -> Any:
    """Return the quotients, 0 where the numerator is: equal eigenvalues do not matter there."""
    nothing = numerator == 0
    return numerator / where(nothing, 1.0, differences)


def _off_diagonal(X: Any) -> Any:
    return X - X.diagonal(0, -2, -1).diag_embed()


def _eigh(g_eigenvalues: Any, g_eigenvectors: Any, eigenvalues: Any, eigenvectors: Any) -> Any:
    V = eigenvectors
    mixed = _off_diagonal(adjoint(V) @ g_eigenvectors)
    inner = _quotient(mixed, row(eigenvalues) - column(eigenvalues))
    return V @ ((inner + g_eigenvalues.to(V.dtype).diag_embed()) @ adjoint(V))


def _eig(
    g_eigenvalues: Any, g_eigenvectors: Any, A_dtype: Any, eigenvalues: Any, eigenvectors: Any
) -> Any:
    V = eigenvectors
    Vh = adjoint(V)
    mixed = Vh @ g_eigenvectors
    # The eigenvectors keep norm 1.
    mixed = mixed - (Vh @ V) * row(mixed.diagonal(0, -2, -1).real)
    differences = conjugate(row(eigenvalues) - column(eigenvalues))
    inner = _quotient(_off_diagonal(mixed), differences) + g_eigenvalues.diag_embed()
    result = _solve(Vh, inner @ Vh)[0]
    return result if A_dtype.is_complex else result.real


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
    return _lu_solve("linalg.det", LU, pivots, right, True, True)


def _log_determinant(g_sign: Any, g_logabsdet: Any, A: Any, sign: Any) -> Any:
    scale = g_logabsdet
    if A.dtype.is_complex:
        scale = scale - 1j * (conjugate(g_sign) * sign).imag
    inverse = matrix_inverse(A)[0]
    return adjoint(inverse) * scale.reshape((*scale._shape, 1, 1))


def _exponential(g: Any, A: Any) -> Any:
    """Return the adjoint of the exponential's derivative, a block of a larger exponential.

    Najfeld and Havel, "Derivatives of the matrix exponential and their computation" (1995).
    """
    n = A._shape[-1]
    Ah = adjoint(A)
    above = concatenate([Ah, g], -1)
    below = concatenate([Ah * 0, Ah], -1)
    return _matrix_exp(concatenate([above, below], -2)).narrow(-2, 0, n).narrow(-1, n, n)


DERIVATIVES = [
    derivative("eigh", A=_eigh),
    derivative("eig", A=_eig),
    derivative("singular_decomposition", A=_svd),
    derivative(
        "pseudoinverse",
        A=pseudoinverse_gradient,
        bound=None,
    ),
    derivative("determinant", A=_determinant),
    derivative("log_determinant", A=_log_determinant),
    derivative("matrix_exponential", A=_exponential),
]
