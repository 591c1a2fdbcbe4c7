"""The standard's extension ``linalg``."""

from __future__ import annotations

from typing import Any, TypeVar

from tensorplug.core import Tensor, ops
from tensorplug.core.device.dtypes import DType
from tensorplug.core.ops.linalg import namespace as linalg, results

from .array import Array, wrap
from .linear_algebra import check_extents, matmul, matrix_transpose, tensordot, vecdot
from .promotion import align
from .statistical import sum

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul",
    "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr",
    "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip


Result = TypeVar("Result", bound=tuple[Any, ...])


def _wrapped(result: Result) -> Result:
    """Return a named tuple with its tensors as Arrays."""
    wrapped: Result = type(result)(*[wrap(part) for part in result])
    return wrapped


def cholesky(x: Tensor, /, *, upper: bool = False) -> Array:
    """Return the triangular factor of a Hermitian positive-definite matrix."""
    return wrap(linalg.cholesky(x, upper=upper))


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Array:
    """Return the cross products of vectors of three elements along an axis."""
    check_extents("cross", x1, x2, axis)
    first, second = ops.broadcast_tensors(*align(x1, x2))
    return wrap(linalg.cross(first, second, dim=axis))


def det(x: Tensor, /) -> Array:
    """Return the determinant."""
    return wrap(linalg.det(x))


def diagonal(x: Tensor, /, *, offset: int = 0) -> Array:
    """Return the diagonal of each matrix, or one beside it."""
    return wrap(linalg.diagonal(x, offset=offset))


def eig(x: Tensor, /) -> results.linalg_eig:
    """Return the eigenvalues and eigenvectors of a square matrix, both complex."""
    return _wrapped(linalg.eig(x))


def eigh(x: Tensor, /) -> results.linalg_eigh:
    """Return the eigenvalues, ascending, and eigenvectors of a Hermitian matrix."""
    return _wrapped(linalg.eigh(x))


def eigvals(x: Tensor, /) -> Array:
    """Return the eigenvalues of a square matrix, complex."""
    return wrap(linalg.eigvals(x))


def eigvalsh(x: Tensor, /) -> Array:
    """Return the eigenvalues of a Hermitian matrix, ascending."""
    return wrap(linalg.eigvalsh(x))


def inv(x: Tensor, /) -> Array:
    """Return the inverse of a matrix."""
    return wrap(linalg.inv(x))


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: float | str | None = "fro") -> Array:
    """Return a norm of each matrix: "fro", "nuc", 1, 2, infinity, or one of these numbers negated."""
    return wrap(linalg.matrix_norm(x, "fro" if ord is None else ord, keepdim=keepdims))


def matrix_power(x: Tensor, n: int, /) -> Array:
    """Return the `n`-th power of a square matrix."""
    return wrap(linalg.matrix_power(x, n))


def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Array:
    """Return how many singular values exceed `rtol` times the greatest."""
    return wrap(linalg.matrix_rank(x, rtol=rtol))


def outer(x1: Tensor, x2: Tensor, /) -> Array:
    """Return the products of each element of one vector with each of another."""
    return wrap(ops.outer(*align(x1, x2)))


def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Array:
    """Return the pseudo-inverse; singular values below `rtol` times the greatest count as 0."""
    return wrap(linalg.pinv(x, rtol=rtol))


def qr(x: Tensor, /, *, mode: str = "reduced") -> results.linalg_qr:
    """Return the factors Q, of orthonormal columns, and R, upper triangular."""
    return _wrapped(linalg.qr(x, mode))


def slogdet(x: Tensor, /) -> results.linalg_slogdet:
    """Return the sign and the logarithm of the absolute value of the determinant."""
    return _wrapped(linalg.slogdet(x))


def solve(x1: Tensor, x2: Tensor, /) -> Array:
    """Return the solution of ``x1 @ x = x2``; only a 1-d `x2` is a vector.

    Examples
    --------
    >>> import tensorplug.array_api as xp
    >>> xp.linalg.solve(xp.asarray([[2.0, 0.0], [0.0, 4.0]]), xp.asarray([2.0, 2.0]))
    Array([1.0000, 0.5000])
    """
    matrix, right = align(x1, x2)
    if right.ndim == 1:
        return wrap(linalg.solve(matrix, ops.unsqueeze(right, -1)).squeeze(-1))
    while right.ndim < matrix.ndim:  # else torch might take a matrix for a batch of vectors
        right = ops.unsqueeze(right, 0)
    return wrap(linalg.solve(matrix, right))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> results.linalg_svd:
    """Return the factors U, S, Vh of the singular value decomposition."""
    return _wrapped(linalg.svd(x, full_matrices))


def svdvals(x: Tensor, /) -> Array:
    """Return the singular values, descending."""
    return wrap(linalg.svdvals(x))


def trace(x: Tensor, /, *, offset: int = 0, dtype: DType | None = None) -> Array:
    """Return the sum of the diagonal, or of one beside it."""
    return sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(
    x: Tensor,
    /,
    *,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
    ord: float = 2,
) -> Array:
    """Return the norm of the vectors along axes, or of all elements."""
    if axis == () and x.ndim:  # each element by itself; torch would take all of them
        return wrap(linalg.vector_norm(ops.unsqueeze(x, -1), ord, -1))
    return wrap(linalg.vector_norm(x, ord, axis, keepdims))
