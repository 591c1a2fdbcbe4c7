"""Eigenvalues and singular values, and what is defined by them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...device.dtypes import ALL_DTYPES, bool_, finfo, int64
from ...dispatch.op_registry import Spec, composite, primitive_tuple
from ...dispatch.out_dtypes import exact_out, names_results
from ...tensor.base import TensorBase
from ..matmul.products import matmul
from . import results
from .rules import adjoint, check_matrix, row, where

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["pinverse", "svd"]


def _triangle(UPLO: str) -> str:
    chosen = str(UPLO).upper()
    if chosen not in ("L", "U"):
        raise RuntimeError(f"linalg.eigh: Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return chosen


@primitive_tuple("A, UPLO", results.linalg_eigh)
def linalg_eigh(A: Tensor, UPLO: str = "L") -> Spec:
    """Return the eigenvalues, ascending, and orthonormal eigenvectors of Hermitian matrices.

    Parameters
    ----------
    A : Tensor
        ``(*, n, n)``; only the triangle `UPLO` is read.
    UPLO : {"L", "U"}
        The lower or the upper triangle.

    Notes
    -----
    The eigenvectors are differentiable where no two eigenvalues are equal, and only through what
    does not depend on their phase.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linalg.eigh(tp.tensor([[1.0, 0.0], [0.0, -2.0]])).eigenvalues
    tensor([-2.,  1.])
    """
    check_matrix("linalg.eigh", A, square=True)
    outputs = ((A._shape[:-1], A.dtype.to_real()), (A._shape, A.dtype))
    return Spec((A, _triangle(UPLO)), outputs=outputs)


def _canonical_eigvalsh(A: Any, UPLO: str = "L") -> tuple[Any, str]:
    check_matrix("linalg.eigvalsh", A, square=True)
    return A, _triangle(UPLO)


@composite(rule=_canonical_eigvalsh, method=False)
def linalg_eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """Return the eigenvalues, ascending, of Hermitian matrices ``(*, n, n)``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linalg.eigvalsh(tp.tensor([[1.0, 0.0], [0.0, -2.0]]))
    tensor([-2.,  1.])
    """
    return linalg_eigh(A, UPLO)[0]


@primitive_tuple("A", results.linalg_eig)
def linalg_eig(A: Tensor) -> Spec:
    """Return the eigenvalues of square matrices and eigenvectors of norm 1, complex in either case.

    Parameters
    ----------
    A : Tensor
        ``(*, n, n)``.

    Notes
    -----
    Differentiable where no two eigenvalues are equal, and only through what does not depend on the
    eigenvectors' phase.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linalg.eig(tp.tensor([[1.0, 0.0], [0.0, 2.0]])).eigenvalues
    tensor([1.+0.j, 2.+0.j])
    """
    check_matrix("linalg.eig", A, square=True)
    dtype = A.dtype.to_complex()
    return Spec((A,), outputs=((A._shape[:-1], dtype), (A._shape, dtype)))


def _canonical_eigvals(A: Any) -> tuple[Any]:
    check_matrix("linalg.eigvals", A, square=True)
    return (A,)


@composite(rule=_canonical_eigvals, method=False)
def linalg_eigvals(A: Tensor) -> Tensor:
    """Return the eigenvalues of square matrices ``(*, n, n)``, complex.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linalg.eigvals(tp.tensor([[1.0, 0.0], [0.0, 2.0]]))
    tensor([1.+0.j, 2.+0.j])
    """
    return linalg_eig(A)[0]


# --- singular values --------------------------------------------------------------------------


@primitive_tuple("A, full_matrices", results.linalg_svd)
def linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> Spec:
    """Return U and V with orthonormal columns and S, descending, with U diag(S) V^H = A.

    Parameters
    ----------
    A : Tensor
        ``(*, m, n)``; with k = min(m, n).
    full_matrices : bool
        Whether U is ``(*, m, m)`` and Vh ``(*, n, n)``, rather than ``(*, m, k)`` and ``(*, k,
        n)``.
    driver : str, optional
        Accepted for the sake of torch's signature; each backend has one routine.

    Notes
    -----
    U and Vh are differentiable where no two singular values are equal, and only through what does
    not depend on their phase; of full matrices, the first k vectors are.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linalg.svd(tp.tensor([[3.0, 0.0], [0.0, 4.0]])).S
    tensor([4., 3.])
    """
    check_matrix("linalg.svd", A)
    *batch, m, n = A._shape
    k = min(m, n)
    lead = tuple(batch)
    return Spec(
        (A, full_matrices),
        outputs=(
            ((*lead, m, m if full_matrices else k), A.dtype),
            ((*lead, k), A.dtype.to_real()),
            ((*lead, n if full_matrices else k, n), A.dtype),
        ),
    )


def _canonical_svdvals(A: Any, *, driver: str | None = None) -> tuple[Any]:
    check_matrix("linalg.svdvals", A)
    return (A,)


@composite("A", rule=_canonical_svdvals, method=False)
def linalg_svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """Return the singular values, descending, of matrices ``(*, m, n)``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linalg.svdvals(tp.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor([4., 3.])
    """
    return linalg_svd(A, False)[1]


@composite(outputs="U, S, V")
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> results.svd:
    """Return U, S and V; ``linalg.svd``, which returns V^H, is its newer name.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.svd(tp.ones(3, 2)).V.shape
    Size([2, 2])
    """
    check_matrix("svd", input)
    if compute_uv:
        U, S, Vh = linalg_svd(input, not some)
        return results.svd(U, S, adjoint(Vh))
    *batch, m, n = input._shape
    source: Any = input.detach()
    return results.svd(
        source.new_zeros((*batch, m, m)), linalg_svdvals(input), source.new_zeros((*batch, n, n))
    )


# --- rank and pseudoinverse -------------------------------------------------------------------


def tolerance(name: str, A: Any, values: Any, atol: Any, rtol: Any) -> Any:
    """Return the bound ``max(atol, rtol * largest)`` below which singular values count as zero.

    Without `rtol` and with `atol` 0 or None, `rtol` is max(m, n) times the dtype's epsilon.
    """
    for value, label in ((atol, "atol"), (rtol, "rtol")):
        if isinstance(value, TensorBase) and value._key.dtype.is_complex:
            raise RuntimeError(f"{name}: {label} tensor of complex type is not supported")
        if not (value is None or isinstance(value, (int, float, TensorBase))):
            raise TypeError(f"{name}: {label} must be float or Tensor, not {type(value).__name__}")
    if rtol is None:
        rtol = finfo(A.dtype).eps * max(A._shape[-2:])
        if isinstance(atol, TensorBase):
            rtol = where(atol > 0, 0.0, rtol)  # type: ignore[operator]
        elif atol:
            rtol = 0.0
    if isinstance(rtol, TensorBase):
        rtol = rtol.reshape((*rtol._shape, 1))  # type: ignore[attr-defined]
    largest = values.amax(-1, True)
    bound = largest * rtol
    if atol is None or (not isinstance(atol, TensorBase) and not atol):
        return bound
    if isinstance(atol, TensorBase):
        return bound.maximum(atol.reshape((*atol._shape, 1)))  # type: ignore[attr-defined]
    return bound.clamp(min=atol)


@composite(name="linalg_matrix_rank", method=False)
def linalg_matrix_rank(
    A: Tensor,
    tol: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
) -> Tensor:
    """Return how many singular values lie above ``max(atol, rtol * largest)``.

    Parameters
    ----------
    A : Tensor
        ``(*, m, n)``.
    tol : float or Tensor, optional
        The older name of `atol`, by position.
    hermitian : bool
        Whether `A` is Hermitian, which is quicker.
    atol, rtol : float or Tensor, optional
        Without either, `rtol` is max(m, n) times the dtype's epsilon.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linalg.matrix_rank(tp.ones(3, 3))
    tensor(1)
    """
    name = "linalg.matrix_rank"
    _only_one(name, "tol", tol, atol, rtol)
    check_matrix(name, A, square=hermitian)
    if tol is not None:
        atol, rtol = tol, 0.0
    values = _magnitudes(A, hermitian)
    if not values._shape[-1]:
        return values.sum(-1).to(int64)
    bound = tolerance(name, A, values, atol, rtol)
    return (values > bound).sum(-1)


def _only_one(name: str, older: str, value: Any, atol: Any, rtol: Any) -> None:
    """Raise TypeError where the older name of a tolerance is given beside the newer ones."""
    if value is not None and (atol is not None or rtol is not None):
        raise TypeError(f"{name}(): {older} is an older name, and not taken beside atol or rtol")


def _magnitudes(A: Any, hermitian: bool) -> Any:
    return linalg_eigvalsh(A, "L").abs() if hermitian else linalg_svdvals(A)


def _canonical_pinv(
    A: Any, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> tuple[Any, ...]:
    _only_one("linalg.pinv", "rcond", rcond, atol, rtol)
    check_matrix(
        "linalg.pinv",
        A,
        square=hermitian,
        said="expected a tensor with 2 or more dimensions",
    )
    for label, value in (("rcond", rcond), ("atol", atol), ("rtol", rtol)):
        if isinstance(value, TensorBase) and value._key.dtype.is_complex:
            raise RuntimeError(f"linalg.pinv: {label} tensor of complex type is not supported")
    return A, hermitian, atol, rcond if rcond is not None else rtol


@composite("A, hermitian, atol, rtol", rule=_canonical_pinv, method=False)
def linalg_pinv(
    A: Tensor,
    rcond: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
) -> Tensor:
    """Return the pseudoinverse ``(*, n, m)`` of matrices ``(*, m, n)`` (Moore and Penrose).

    Parameters
    ----------
    A : Tensor
        ``(*, m, n)``.
    rcond : float or Tensor, optional
        The older name of `rtol`, by position.
    hermitian : bool
        Whether `A` is Hermitian, which is quicker.
    atol, rtol : float or Tensor, optional
        Singular values up to ``max(atol, rtol * largest)`` count as zero; without either, `rtol` is
        max(m, n) times the dtype's epsilon.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linalg.pinv(tp.tensor([[2.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    *batch, m, n = A._shape
    if not m or not n:
        return A.new_empty((*batch, n, m)) + A.sum()
    if hermitian:
        values, V = linalg_eigh(A, "L")
        magnitudes = values.abs()
        keep = magnitudes > tolerance("linalg.pinv", A, magnitudes.detach(), atol, rtol)
        inverse = where(keep, 1 / where(keep, values, 1.0), 0.0)
        return matmul(V * row(inverse), adjoint(V))
    U, S, Vh = linalg_svd(A, False)
    keep = tolerance("linalg.pinv", A, S.detach(), atol, rtol) < S
    inverse = where(keep, 1 / where(keep, S, 1.0), 0.0)
    return matmul(adjoint(Vh) * row(inverse), adjoint(U))


@composite()
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """Return the pseudoinverse; ``linalg.pinv`` is its newer name.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.pinverse(tp.tensor([[2.0]]))
    tensor([[0.5000]])
    """
    check_matrix("pinverse", input, said="expected a tensor with 2 or more dimensions")
    return linalg_pinv(input, rcond)


exact_out(linalg_matrix_rank, others=tuple(d for d in ALL_DTYPES if d is not bool_))
names_results(linalg_eig, linalg_matrix_rank, linalg_pinv, pinverse)
names_results(linalg_eigvals, names=("eigenvalues",))
exact_out(linalg_eigh, linalg_eigvalsh, linalg_svd, svd, linalg_svdvals)
