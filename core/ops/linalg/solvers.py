"""Systems of equations and inverses."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...contexts import thread
from ...device.dtypes import finfo, int32, int64
from ...dispatch.choice import choose
from ...dispatch.op_registry import Delegated, Spec, composite, handle, primitive_tuple
from ...dispatch.out_dtypes import exact_out, names_results
from ...tensor.shapes import normalize_dim, normalize_dims, one_or_several
from ..rules import check_tensor
from . import results
from .lu import linalg_lu_factor_ex
from .rules import (
    SINGULAR,
    broadcast_batches,
    check_factor_inputs,
    check_matrix,
    check_same_dtype,
    column,
    identity_like,
    linalg_check_errors,
    transpose,
)
from .triangular import linalg_lu_solve

if TYPE_CHECKING:
    from ...dispatch.keys import DispatchKey
    from ...tensor.tensor import Tensor

__all__ = ["inverse"]


@primitive_tuple("A, B", results.linalg_solve_ex)
def linalg_solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Spec:
    """Return X with A X = B, and in ``info`` the first zero pivot of a singular matrix.

    Parameters are those of :func:`linalg_solve`; `check_errors` says whether to raise where a
    matrix is singular.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linalg.solve_ex(tp.tensor([[2.0]]), tp.tensor([[4.0]])).result
    tensor([[2.]])
    """
    name = "linalg.solve_ex"
    vector = _check_system(name, A, B, left)
    if vector or check_errors or not left or A._shape[:-2] != B._shape[:-2]:
        return Delegated(_solve_checked(A, B, left, check_errors, name))
    if len(A._shape) == 2 and A._shape[0] >= _LARGE and B._shape[1] and _has_factors(A._key):
        X, _, _, info = linalg_solve_lu(A, B)
        return Delegated(results.linalg_solve_ex(X, info))
    return Spec((A, B), outputs=((B._shape, B.dtype), (A._shape[:-2], int32)))


#: Rows of a matrix whose factors are kept for the backward pass, as computing them again takes long.
_LARGE = 128
_SOLVE, _SOLVE_LU, _FACTOR = (
    handle(name) for name in ("linalg_solve_ex", "linalg_solve_lu", "linalg_lu_factor_ex")
)


def _has_factors(key: DispatchKey) -> bool:
    """Return whether who solves on a key factorizes there, too: another's kernel for solving has to run."""
    by = [
        choose(op, key.device.type, key.dtype, thread.preferred).kernel
        for op in (_SOLVE, _SOLVE_LU, _FACTOR)
    ]
    solving, factors = by[0], by[1] or by[2]
    return solving is not None and factors is not None and solving.plugin == factors.plugin


def _canonical_solve_lu(A: Any, B: Any) -> tuple[Any, Any]:
    name = "linalg_solve_lu"
    if _check_system(name, A, B, True) or A._shape[:-2] != B._shape[:-2]:
        raise RuntimeError(
            f"{name}: expected a matrix B for each of A, got {list(A._shape)} and {list(B._shape)}"
        )
    return A, B


@composite(rule=_canonical_solve_lu, outputs="result, LU, pivots, info", method=False)
def linalg_solve_lu(A: Tensor, B: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return X with A X = B, and the LU factors of A, by which the backward pass solves with its adjoint.

    Parameters
    ----------
    A, B : Tensor
        ``(*, n, n)`` and ``(*, n, k)``.

    Returns
    -------
    (result, LU, pivots, info) : tuple of Tensor
        Gradients go through the first alone.

    Examples
    --------
    >>> import tensorplug as tp
    >>> X, LU, pivots, info = tp.ops.linalg_solve_lu(tp.tensor([[2.0]]), tp.tensor([[4.0]]))
    >>> X, LU
    (tensor([[2.]]), tensor([[2.]]))
    """
    LU, pivots, info = linalg_lu_factor_ex(A)
    return linalg_lu_solve(LU, pivots, B), LU.detach(), pivots, info


def _check_system(name: str, A: Any, B: Any, left: bool) -> bool:
    """Check the arguments of a system of equations; return whether B is a vector or one for each A."""
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
        if B._shape[-1] != A._shape[-1]:
            check_factor_inputs(name, A, column(B), left)
        return True
    if len(B._shape) < 2:
        raise RuntimeError(f"{name}: B must have at least 1 dimension, got shape {list(B._shape)}")
    check_factor_inputs(name, A, B, left)
    return False


def _solve_checked(A: Any, B: Any, left: bool, check: bool, name: str) -> results.linalg_solve_ex:
    vector = _check_system(name, A, B, left)
    if vector:
        B = column(B)
    if not left:
        A, B = transpose(A), transpose(B)
    given = A
    A, B = broadcast_batches(A, B)  # of as many dimensions, B is no vector
    X: Any
    X, info = linalg_solve_ex(A, B)
    if info._shape != given._shape[:-2]:
        info = _of_one_copy(info, given)
    if check:
        linalg_check_errors(info, name, "The solver failed because the input matrix is singular.")
    if vector:
        X = X.reshape(X._shape[:-1])
    elif not left:
        X = transpose(X)
    return results.linalg_solve_ex(X, info)


def _of_one_copy(info: Any, A: Any) -> Any:
    """Return what is known of matrices that were repeated, for each once."""
    batch = A._shape[:-2]
    if not all(info._shape):  # there is no copy
        return linalg_lu_factor_ex(A.detach())[2]
    info = info[(0,) * (len(info._shape) - len(batch))]
    for dim, (size, copies) in enumerate(zip(batch, info._shape, strict=True)):
        if size < copies:
            info = info.narrow(dim, 0, size)
    return info


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


def _canonical_inv_ex(A: Any, *, check_errors: bool = False) -> Any:
    if check_errors:
        return Delegated(_inverse(A, "linalg.inv_ex"))
    check_matrix("linalg.inv_ex", A, square=True)
    return (A,)


@composite("A", rule=_canonical_inv_ex, outputs=results.linalg_inv_ex, method=False)
def linalg_inv_ex(A: Tensor, *, check_errors: bool = False) -> results.linalg_inv_ex:
    """Return the inverse, and in ``info`` the first zero pivot of a singular matrix.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linalg.inv_ex(tp.tensor([[2.0]])).inverse
    tensor([[0.5000]])
    """
    return results.linalg_inv_ex(*linalg_solve_ex(A, identity_like(A)))


def _inverse(A: Any, name: str) -> results.linalg_inv_ex:
    check_matrix(name, A, square=True)
    result = linalg_inv_ex(A)
    linalg_check_errors(result.info, name, SINGULAR)
    return result


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
    return _inverse(A, "linalg.inv").inverse


@composite()
def inverse(input: Tensor) -> Tensor:
    """Return the inverse of square matrices; an alias of ``linalg.inv``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.inverse(tp.tensor([[2.0]]))
    tensor([[0.5000]])
    """
    return _inverse(input, "inverse").inverse


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
    if ind > len(A._shape):
        raise RuntimeError(
            f"linalg.tensorinv: Expected ind to be at most the {len(A._shape)} dimensions of A, got {ind}"
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
        ndim = len(A._shape)
        last = [normalize_dim(d, ndim, "linalg.tensorsolve") for d in one_or_several(dims)]
        normalize_dims(last, ndim, "linalg.tensorsolve")  # which refuses one that is there twice
        A = A.permute((*[d for d in range(len(A._shape)) if d not in last], *last))
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


@primitive_tuple("A, B, rcond, driver", results.linalg_lstsq)
def linalg_lstsq(
    A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None
) -> Spec:
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
        What there is not is empty. Where `A` is broadcast these two are of its own batch.

    Examples
    --------
    >>> import tensorplug as tp
    >>> A = tp.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> tp.linalg.lstsq(A, tp.tensor([[1.0], [3.0], [5.0]])).solution
    tensor([[1.0000],
            [2.0000]])
    """
    name = "linalg.lstsq"
    check_matrix(name, A, "input", said="{} must have at least 2 dimensions")
    check_tensor(B, name, "B")
    check_same_dtype(name, A, B)
    if driver is None:
        driver = "gelsy"
    if driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(
            f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), got {driver!r}"
        )
    if is_vector(A, B):
        if B._shape[-1] != A._shape[-2]:
            raise RuntimeError(
                f"{name}: input.size(-2) should match other.size(-1), got {list(A._shape)} and "
                f"{list(B._shape)}"
            )
        A, B = broadcast_batches(A, column(B))  # of as many dimensions, B is no vector
        solution: Any
        solution, *others = linalg_lstsq(A, B, rcond, driver=driver)
        return Delegated(results.linalg_lstsq(solution.reshape(solution._shape[:-1]), *others))
    if not B._shape:
        raise RuntimeError(f"{name}: other must have at least 1 dimension, got {B!r}")
    if len(B._shape) < 2 or B._shape[-2] != A._shape[-2]:
        raise RuntimeError(
            f"{name}: input.size(-2) should match other.size(-2), got {list(A._shape)} and "
            f"{list(B._shape)}"
        )
    own = A._shape[:-2]
    A, B = broadcast_batches(A, B)
    if A._shape[:-2] != own:
        solution, error, *others = linalg_lstsq(A, B, rcond, driver=driver)
        others = [_of_each(found, len(A._shape) - 2, own) for found in others]
        return Delegated(results.linalg_lstsq(solution, error, *others))
    if rcond is None:
        rcond = finfo(A.dtype).eps * max(A._shape[-2:])
    *batch, m, n = A._shape
    lead = tuple(batch)
    k = B._shape[-1]
    real = A.dtype.to_real()
    ranked = driver != "gels"
    valued = driver in ("gelsd", "gelss")
    # Whether there are residuals depends on the ranks.
    residuals = ((*lead, k) if driver == "gels" else None) if m > n else (0,)
    return Spec(
        (A, B, float(rcond), driver),
        outputs=(
            ((*lead, n, k), A.dtype),
            (residuals, real),
            (lead if ranked else (0,), int64),
            ((*lead, min(m, n)) if valued else (0,), real),
        ),
    )


def _of_each(found: Any, dims: int, batch: tuple[int, ...]) -> Any:
    """Return what was found of matrices `batch` that had been repeated along `dims` dimensions."""
    if not found.numel():  # not there
        return found
    for _ in range(dims - len(batch)):
        found = found.select(0, 0)
    for dim, size in enumerate(batch):
        if size != found._shape[dim]:
            found = found.narrow(dim, 0, 1)
    return found


names_results(linalg_tensorinv, linalg_tensorsolve, linalg_lstsq)
exact_out(linalg_lstsq, where=lambda _: False)  # not of the rank, which it converts, too
exact_out(linalg_solve_ex, linalg_solve, linalg_inv_ex, linalg_inv, inverse)
