"""Records of systems of equations and inverses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import DType, float32
from tensorplug.core.errors import LinAlgError
from tensorplug.core.ops.linalg.factors import linalg_cholesky
from tensorplug.core.ops.linalg.lu import linalg_ldl_factor, linalg_lu_factor
from tensorplug.core.ops.linalg.triangular import linalg_lu_solve

from ...records import ErrorSample, OpRecord, Sample
from ._matrices import (
    DIGITS,
    MATRICES,
    adjoint,
    definite,
    dense,
    of_squares,
    regular,
    square_errors,
    symmetric,
)

_ROUNDED: dict[str, Any] = {"dtypes": MATRICES, "rtol": DIGITS, "atol": DIGITS}


def _solve(A: Any, B: Any, *, left: bool = True, **options: Any) -> Any:
    vector = B.ndim == 1 or (left and A.ndim - 1 == B.ndim and A.shape[:-1] == B.shape)
    if vector:
        B = B[..., None]
    X = (
        np.linalg.solve(A, B)
        if left
        else np.swapaxes(np.linalg.solve(np.swapaxes(A, -1, -2), np.swapaxes(B, -1, -2)), -1, -2)
    )
    return X[..., 0] if vector else X


def _no_info(function: Callable[..., Any]) -> Callable[..., Any]:
    def reference(A: Any, *args: Any, **options: Any) -> Any:
        result = function(A, *args, **options)
        return result, np.zeros(A.shape[:-2], np.int32)

    return reference


def _systems(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(regular(make), dense(make, 3, 2))
    yield Sample(regular(make, 2), dense(make, 2, 3, 1))
    yield Sample(regular(make, n=0), dense(make, 0, 2))
    yield Sample(regular(make, n=2), dense(make, 2, 0))


def _public_systems(make: Any, dtype: DType) -> Iterator[Sample]:
    yield from _systems(make, dtype)
    yield Sample(regular(make, 2), dense(make, 3, 2))
    yield Sample(regular(make), dense(make, 2, 3, 2))
    yield Sample(regular(make), dense(make, 2, 3), left=False)


def _vector_systems(make: Any, dtype: DType) -> Iterator[Sample]:
    yield from _public_systems(make, dtype)
    yield Sample(regular(make), dense(make, 3))
    yield Sample(regular(make, 2), dense(make, 2, 3))


def _system_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, 3), make(2)), RuntimeError, "2 by 3")
    yield ErrorSample(Sample(make(2, 2), make(3)), RuntimeError, "Incompatible shapes")
    yield ErrorSample(Sample(make(2, 2), make(2, dtype=float32)), RuntimeError, "same dtype")
    yield ErrorSample(Sample(make(2, 2), make(2), left=False), RuntimeError, "left=False")


def _check_factored(results: Any, sample: Sample) -> None:
    from ._matrices import assert_near, exact

    A, B = sample.args
    X, LU, pivots, info = results
    expected = np.linalg.solve(*exact(A, B))
    found, again = exact(X, linalg_lu_solve(LU, pivots, B))
    assert_near(found, expected, A, "the solution")
    assert_near(again, expected, A, "that of the factors")
    assert not info.any()


def _factored_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, 3), make(2, 1)), RuntimeError, "2 by 3")
    yield ErrorSample(Sample(make(2, 2), make(2)), RuntimeError, "a matrix B for each of A")


def _solve_errors(make: Any) -> Iterator[ErrorSample]:
    yield from _system_errors(make)
    yield ErrorSample(Sample(make(2, 2) * 0, make(2)), LinAlgError, "singular")


def _inverse_errors(make: Any) -> Iterator[ErrorSample]:
    yield from square_errors(make)
    yield ErrorSample(Sample(make(2, 2) * 0), LinAlgError, "diagonal element 1 is zero")


# --- triangular and factored ------------------------------------------------------------------
def _triangle(A: Any, upper: bool, unitriangular: bool = False) -> Any:
    T = np.triu(A) if upper else np.tril(A)
    if unitriangular:
        eye = np.eye(A.shape[-1])
        T = T * (1 - eye) + eye
    return T


def _triangular(make: Any, dtype: DType) -> Iterator[Sample]:
    for upper in (False, True):
        for unit in (False, True):
            yield Sample(
                regular(make), dense(make, 3, 2), upper=upper, left=True, unitriangular=unit
            )
        yield Sample(regular(make, 2), dense(make, 2, 3), upper=upper, left=False)
        yield Sample(regular(make, n=0), dense(make, 0, 2), upper=upper)
        yield Sample(regular(make, 0), dense(make, 0, 3, 2), upper=upper)


def _triangular_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, 3), make(2, 2), upper=True), RuntimeError, "2 by 3")
    yield ErrorSample(Sample(make(2, 2), make(2), upper=True), RuntimeError, "at least 2 dim")
    yield ErrorSample(Sample(make(2, 2), make(3, 2), upper=True), RuntimeError, "Incompatible")


def _old_triangular(make: Any, dtype: DType) -> Iterator[Sample]:
    for upper in (False, True):
        for transpose in (False, True):
            yield Sample(dense(make, 3, 2), regular(make), upper, transpose)
    yield Sample(dense(make, 0, 2), regular(make, n=0), True, False)


def _old_reference(b: Any, A: Any, upper: bool, transpose: bool) -> Any:
    T = _triangle(A, upper)
    return np.linalg.solve(T.T if transpose else T, b), A


def _factored(*options: dict[str, Any]) -> Callable[..., Iterator[Sample]]:
    def samples(make: Any, dtype: DType) -> Iterator[Sample]:
        for option in options:
            for batch in ((), (2,)):
                LU, pivots = linalg_lu_factor(regular(make, *batch))
                shape = (3, 2) if option.get("left", True) else (2, 3)
                yield Sample(LU, pivots, dense(make, *batch, *shape), **option)
            LU, pivots = linalg_lu_factor(regular(make, n=0))
            yield Sample(LU, pivots, dense(make, 0, 0), **option)

    return samples


def _matrix_of(LU: Any, pivots: Any) -> Any:
    n = LU.shape[-1]
    A = (np.tril(LU, -1) + np.eye(n)) @ np.triu(LU)
    for place in np.ndindex(*pivots.shape[:-1]):
        for i in reversed(range(n)):
            other = pivots[place][i] - 1
            A[place][[i, other]] = A[place][[other, i]]
    return A


def _lu_solve(LU: Any, pivots: Any, B: Any, left: bool = True, adjoint: bool = False) -> Any:
    A = _matrix_of(LU, pivots)
    return _solve(_adjoint(A) if adjoint else A, B, left=left)


_adjoint = adjoint


def _lu_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, 2), make(2), make(2, 2)), RuntimeError, "int32")


def _old_factored(make: Any, dtype: DType) -> Iterator[Sample]:
    for sample in _factored({})(make, dtype):
        LU, pivots, B = sample.args
        yield Sample(B, LU, pivots)


def _cholesky_systems(make: Any, dtype: DType) -> Iterator[Sample]:
    for upper in (False, True):
        yield Sample(dense(make, 3, 2), linalg_cholesky(definite(make), upper=upper), upper)
    yield Sample(dense(make, 3, 1), linalg_cholesky(definite(make, 2)))
    yield Sample(dense(make, 0, 2), definite(make, n=0))
    yield Sample(dense(make, 0, 3, 1), definite(make, 0))


def _cholesky_factors(make: Any, dtype: DType) -> Iterator[Sample]:
    for upper in (False, True):
        yield Sample(linalg_cholesky(definite(make), upper=upper), upper)
    yield Sample(linalg_cholesky(definite(make, 2)))
    yield Sample(definite(make, n=0))
    yield Sample(definite(make, 0))


def _product(L: Any, upper: bool) -> Any:
    T = _triangle(L, upper)
    return adjoint(T) @ T if upper else T @ adjoint(T)


def _cholesky_solve(B: Any, L: Any, upper: bool = False) -> Any:
    return np.linalg.solve(_product(L, upper), np.broadcast_to(B, (*L.shape[:-1], B.shape[-1])))


def _cholesky_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(3, 1), make(2, 2)), RuntimeError, "Incompatible")


def _ldl_systems(make: Any, dtype: DType) -> Iterator[Sample]:
    for hermitian in (False, True):
        A = symmetric(make) if hermitian else dense(make, 3, 3)
        A = A if hermitian else A + A.mT
        LD, pivots = linalg_ldl_factor(A, hermitian=hermitian)
        yield Sample(LD, pivots, dense(make, 3, 2), hermitian=hermitian, label=str(hermitian))
    LD, pivots = linalg_ldl_factor(definite(make, 2), hermitian=True)
    yield Sample(LD, pivots, dense(make, 2, 3, 1), hermitian=True)
    LD, pivots = linalg_ldl_factor(definite(make, n=0))
    yield Sample(LD, pivots, dense(make, 0, 1))


def _ldl_solve(LD: Any, pivots: Any, B: Any, hermitian: bool = False) -> Any:
    """Solve with the factors put together again, blocks among them (LAPACK's dsytf2, lower)."""
    result = np.empty_like(B)
    for place in np.ndindex(*LD.shape[:-2]):
        result[place] = np.linalg.solve(
            _symmetric_of(LD[place], pivots[place], hermitian), B[place]
        )
    return result


def _symmetric_of(LD: Any, pivots: Any, hermitian: bool) -> Any:
    n = len(LD)
    A = np.zeros((n, n), LD.dtype)
    steps = []
    k = 0
    while k < n:
        size = 1 if pivots[k] > 0 else 2
        steps.append((k, size))
        k += size
    for k, size in reversed(steps):
        D = LD[k : k + size, k : k + size].copy()
        if size == 2:
            D[0, 1] = D[1, 0].conj() if hermitian else D[1, 0]
        L = LD[k + size :, k : k + size]
        Lh = adjoint(L) if hermitian else L.T
        A[k + size :, k + size :] += L @ D @ Lh
        A[k : k + size, k : k + size] = D
        A[k + size :, k : k + size] = L @ D
        A[k : k + size, k + size :] = D @ Lh
        last, other = k + size - 1, abs(pivots[k + size - 1]) - 1
        A[[last, other]] = A[[other, last]]
        A[:, [last, other]] = A[:, [other, last]]
    return A


# --- tensors as matrices, least squares -------------------------------------------------------
def _tensorinv_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(regular(make, n=4).reshape(4, 2, 2), 1)
    yield Sample(regular(make, n=4).reshape(2, 2, 4))
    yield Sample(regular(make, n=2), 1)
    yield Sample(regular(make, n=0).reshape(0, 0, 2), 1)


def _tensorinv_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, 3), 0), RuntimeError, "strictly positive")
    yield ErrorSample(Sample(make(2, 3), 1), RuntimeError, "prod")


def _tensorsolve_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(regular(make, n=4).reshape(2, 2, 4), dense(make, 2, 2))
    yield Sample(regular(make, n=4).reshape(2, 4, 2), dense(make, 2, 2), dims=(1,))
    yield Sample(regular(make, n=0).reshape(0, 2, 0), dense(make, 0, 2))


def _tensorsolve_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, 3, 4), make(2, 3)), RuntimeError, "prod")


def _least_squares_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for shape in ((4, 2), (2, 4), (3, 3), (2, 4, 2)):
        yield Sample(dense(make, *shape), dense(make, *shape[:-1], 2))
    yield Sample(dense(make, 4, 2), dense(make, 4), driver="gelsd")
    yield Sample(dense(make, 4, 2), dense(make, 4, 1), driver="gels")
    yield Sample(dense(make, 4, 2), dense(make, 4, 1), 1e-6, driver="gelss")


def _check_least_squares(result: Any, sample: Sample) -> None:
    from ._matrices import assert_near, exact

    A, B = exact(*sample.args[:2])
    solution, residuals, rank, values = exact(*result)
    vector = B.ndim < A.ndim
    B = B[..., None] if vector else B
    expected = np.linalg.pinv(A) @ B
    assert_near(solution[..., None] if vector else solution, expected, sample.args[0], "solution")
    if residuals.size:
        error = (np.abs(B - A @ expected) ** 2).sum(-2)
        assert_near(residuals, error, sample.args[0], "residuals")
    if rank.size:
        assert (rank == min(A.shape[-2:])).all()
    if values.size:
        singular = np.linalg.svd(A, compute_uv=False)
        assert_near(values, singular, sample.args[0], "singular values")


def _least_squares_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(3, 2), make(2, 2)), RuntimeError, "should match")
    yield ErrorSample(Sample(make(3, 2), make(3, 2), driver="x"), RuntimeError, "driver")


# Whether there are residuals depends on the ranks, that is on the data.
_BY_RANK = {"meta": "the shape of the residuals depends on the ranks"}


RECORDS = [
    OpRecord(
        "linalg_solve_lu",
        _systems,
        check=_check_factored,
        gradient=False,  # only the solution has one; see tests/ops/test_linalg_gradients.py
        errors=_factored_errors,
        **_ROUNDED,
    ),
    OpRecord(
        "linalg_solve_ex",
        _public_systems,
        _no_info(_solve),
        errors=_system_errors,
        torch="linalg.solve_ex",
        **_ROUNDED,
    ),
    OpRecord(
        "linalg_solve",
        _vector_systems,
        _solve,
        errors=_solve_errors,
        torch="linalg.solve",
        **_ROUNDED,
    ),
    OpRecord(
        "linalg_inv_ex",
        of_squares(regular),
        _no_info(np.linalg.inv),
        errors=square_errors,
        torch="linalg.inv_ex",
        **_ROUNDED,
    ),
    OpRecord(
        "linalg_inv",
        of_squares(regular),
        np.linalg.inv,
        errors=_inverse_errors,
        torch="linalg.inv",
        **_ROUNDED,
    ),
    OpRecord("inverse", of_squares(regular), np.linalg.inv, errors=_inverse_errors, **_ROUNDED),
    OpRecord(
        "linalg_solve_triangular",
        _triangular,
        lambda A, B, upper, left=True, unitriangular=False: _solve(
            _triangle(A, upper, unitriangular), B, left=left
        ),
        errors=_triangular_errors,
        torch="linalg.solve_triangular",
        **_ROUNDED,
    ),
    OpRecord("triangular_solve", _old_triangular, _old_reference, **_ROUNDED),
    OpRecord(
        "linalg_lu_solve",
        _factored({}, {"left": False}, {"adjoint": True}, {"left": False, "adjoint": True}),
        _lu_solve,
        errors=_lu_errors,
        torch="linalg.lu_solve",
        **_ROUNDED,
    ),
    OpRecord("lu_solve", _old_factored, lambda b, LU, pivots: _lu_solve(LU, pivots, b), **_ROUNDED),
    OpRecord(
        "cholesky_solve",
        _cholesky_systems,
        _cholesky_solve,
        errors=_cholesky_errors,
        **_ROUNDED,
    ),
    OpRecord(
        "cholesky_inverse",
        _cholesky_factors,
        lambda L, upper=False: np.linalg.inv(_product(L, upper)),
        errors=square_errors,
        **_ROUNDED,
    ),
    OpRecord(
        "linalg_ldl_solve",
        _ldl_systems,
        _ldl_solve,
        gradient=False,
        torch="linalg.ldl_solve",
        **_ROUNDED,
    ),
    OpRecord(
        "linalg_tensorinv",
        _tensorinv_samples,
        lambda A, ind=2: (
            np.linalg.tensorinv(A, ind) if A.size else np.zeros(A.shape[ind:] + A.shape[:ind])
        ),
        errors=_tensorinv_errors,
        torch="linalg.tensorinv",
        **_ROUNDED,
    ),
    OpRecord(
        "linalg_tensorsolve",
        _tensorsolve_samples,
        lambda A, B, dims=None: np.linalg.tensorsolve(A, B, dims),
        errors=_tensorsolve_errors,
        torch="linalg.tensorsolve",
        **_ROUNDED,
    ),
    OpRecord(
        "linalg_lstsq",
        _least_squares_samples,
        check=_check_least_squares,
        errors=_least_squares_errors,
        skips=_BY_RANK,
        torch="linalg.lstsq",
        gradient=False,  # only the solution has one; see tests/ops/test_linalg_gradients.py
        **_ROUNDED,
    ),
]
