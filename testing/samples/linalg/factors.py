"""Records of factorizations: most are checked by multiplying the factors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import DType, int32
from tensorplug.core.errors import LinAlgError
from tensorplug.core.ops import eye
from tensorplug.core.ops.linalg.factors import geqrf
from tensorplug.core.ops.linalg.lu import linalg_lu_factor, linalg_lu_factor_ex

from ...records import ErrorSample, OpRecord, Sample
from ._matrices import (
    DIGITS,
    MATRICES,
    adjoint,
    assert_near,
    definite,
    dense,
    exact,
    matrix_errors,
    of_rectangles,
    of_squares,
    square_errors,
    symmetric,
)

# The factors of a matrix of which one triangle is read: finite differences do not keep it
# symmetric.
# tests/ops/test_linalg_gradients.py differentiates through a symmetric matrix.
ONE_TRIANGLE = {"gradient": False}


# --- Cholesky ---------------------------------------------------------------------------------
def _cholesky(A: Any, upper: bool = False, check_errors: bool = False) -> Any:
    L = np.linalg.cholesky(A) if A.size else A
    return adjoint(L) if upper else L


def _with_info(A: Any, **options: Any) -> Any:
    return _cholesky(A, **options), np.zeros(A.shape[:-2], np.int32)


def _indefinite(make: Any) -> Iterator[ErrorSample]:
    yield from square_errors(make)
    negative = -eye(2, dtype=make.dtype, device=make.device)
    yield ErrorSample(Sample(negative), LinAlgError, "minor of order 1 is not positive")


_CHOLESKY: dict[str, Any] = {"dtypes": MATRICES, "rtol": DIGITS, "atol": DIGITS, **ONE_TRIANGLE}


# --- QR ---------------------------------------------------------------------------------------
def _check_qr(result: Any, sample: Sample) -> None:
    (A,) = exact(sample.args[0])
    Q, R = exact(*result)
    assert_near(np.triu(R), R, sample.args[0], "R is upper triangular")
    if Q.size or Q.ndim == A.ndim:
        assert_near(Q @ R, A, sample.args[0], "Q R = A")
        k = Q.shape[-1]
        assert_near(
            adjoint(Q) @ Q, np.broadcast_to(np.eye(k), (*Q.shape[:-2], k, k)), sample.args[0], "Q"
        )


def _modes(*modes: Any) -> Callable[..., Iterator[Sample]]:
    def samples(make: Any, dtype: DType) -> Iterator[Sample]:
        for mode in modes:
            for shape in ((3, 3), (4, 2), (2, 3), (2, 3, 2), (0, 2), (2, 0)):
                yield Sample(dense(make, *shape), mode)

    return samples


def _wide_or_reduced(make: Any, dtype: DType) -> Iterator[Sample]:
    for shape in ((3, 3), (3, 2), (2, 3), (2, 2, 2), (0, 2), (2, 0)):
        yield Sample(dense(make, *shape), "reduced")
    yield Sample(dense(make, 2, 3), "complete")


def _mode_errors(make: Any) -> Iterator[ErrorSample]:
    yield from matrix_errors(make)
    yield ErrorSample(Sample(make(2, 2), "x"), RuntimeError, "unrecognized mode")


def _compact(make: Any, dtype: DType) -> Iterator[Sample]:
    for shape in ((3, 3), (3, 2), (2, 3, 2), (4, 1), (3, 0), (0, 3, 2)):
        yield Sample(*geqrf(dense(make, *shape)))
    a, tau = geqrf(dense(make, 3, 3))
    yield Sample(a, tau[:2])


def _product(a: Any, tau: Any) -> Any:
    *batch, m, _ = a.shape
    Q = np.broadcast_to(np.eye(m, dtype=a.dtype), (*batch, m, m)).copy()
    for i in range(tau.shape[-1]):
        v = a[..., :, i : i + 1].copy()
        v[..., :i, :] = 0
        v[..., i, :] = 1
        Q = Q - (Q @ v) * tau[..., i][..., None, None] @ adjoint(v)
    return Q


def _product_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, 3), make(2)), RuntimeError, "greater than or equal")
    yield ErrorSample(Sample(make(3, 2), make(3)), RuntimeError, "greater than or equal")
    yield ErrorSample(Sample(make(2, 3, 2), make(2)), RuntimeError, "batch dimensions")


def _ormqr_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for left in (True, False):
        for transpose in (True, False):
            a, tau = geqrf(dense(make, 3, 2))
            other = dense(make, 3, 2) if left else dense(make, 2, 3)
            yield Sample(a, tau, other, left, transpose)
            yield Sample(a, tau, other[:, :0] if left else other[:0], left, transpose)


def _ormqr(a: Any, tau: Any, other: Any, left: bool, transpose: bool) -> Any:
    Q = _product(a, tau)
    Q = adjoint(Q) if transpose else Q
    return Q @ other if left else other @ Q


def _ormqr_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(3, 2), make(2), make(2, 2)), RuntimeError, "must be equal")


def _check_compact(result: Any, sample: Sample) -> None:
    (A,) = exact(sample.args[0])
    a, tau = exact(*result)
    Q = _product(a[..., :, : tau.shape[-1]], tau)
    assert_near(Q @ np.triu(a), A, sample.args[0], "Q R = A")


_ROUNDED: dict[str, Any] = {"dtypes": MATRICES, "rtol": DIGITS, "atol": DIGITS}


# --- LU ---------------------------------------------------------------------------------------
def _permuted(pivots: Any, m: int) -> Any:
    """Return the rows' order after the exchanges, matrix by matrix."""
    order = np.broadcast_to(np.arange(m), (*pivots.shape[:-1], m)).copy()
    for place in np.ndindex(*pivots.shape[:-1]):
        for i, other in enumerate(pivots[place] - 1):
            order[place][[i, other]] = order[place][[other, i]]
    return order


def _check_lu(result: Any, sample: Sample) -> None:
    (A,) = exact(sample.args[0])
    LU, pivots = exact(*result[:2])
    m = A.shape[-2]
    k = min(A.shape[-2:])
    L = np.tril(LU[..., :, :k], -1) + np.eye(m, k)
    order = _permuted(pivots, m)
    rows = np.take_along_axis(A, order[..., None], -2)
    assert_near(L @ np.triu(LU[..., :k, :]), rows, sample.args[0], "L U = P^T A")
    assert result[1].dtype is int32


def _check_unpacked(result: Any, sample: Sample) -> None:
    P, L, U = exact(*result)
    A = sample.args[0]
    k = min(A.shape[-2:])
    if len(sample.args) == 1:
        assert_near(P @ L @ U, exact(A)[0], A, "P L U = A")
    assert_near(np.tril(L), L, A, "L is lower triangular")
    assert_near(np.triu(U), U, A, "U is upper triangular")
    assert L.shape[-1] == U.shape[-2] == k


def _pivots(make: Any, dtype: DType) -> Iterator[Sample]:
    for shape in ((4, 4), (2, 3, 4), (4, 2), (2, 0), (0, 3, 3)):
        yield Sample(linalg_lu_factor_ex(dense(make, *shape))[1], shape[-2])


def _packed(make: Any, dtype: DType) -> Iterator[Sample]:
    for shape in ((3, 3), (3, 2), (2, 2, 3), (0, 2), (2, 0), (0, 2, 2)):
        LU, pivots = linalg_lu_factor(dense(make, *shape))
        yield Sample(LU, pivots)


def _singular(make: Any) -> Iterator[ErrorSample]:
    yield from matrix_errors(make)
    yield ErrorSample(Sample(make(2, 2) * 0), RuntimeError, "is zero")


def _unpack_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, 2), make(2)), RuntimeError, "int32")


# --- LDL --------------------------------------------------------------------------------------
def _ldl_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for hermitian in (False, True):
        yield Sample(definite(make), hermitian=hermitian)
        yield Sample(symmetric(make, 2), hermitian=hermitian)
    yield Sample(definite(make, n=0))


def _check_ldl(result: Any, sample: Sample) -> None:
    """Multiply the factors where D is diagonal; others are checked by solving."""
    LD, pivots = result[:2]
    (A,) = exact(sample.args[0])
    places, packed = exact(pivots, LD)
    straight = np.arange(1, A.shape[-1] + 1)
    if A.size and (places == straight).all() and sample.kwargs.get("hermitian"):
        L = np.tril(packed, -1) + np.eye(A.shape[-1])
        D = packed * np.eye(A.shape[-1])
        assert_near(L @ D @ adjoint(L), A, LD, "L D L^H = A")
    assert LD.shape == sample.args[0].shape


_LDL: dict[str, Any] = {"check": _check_ldl, "gradient": False, **_ROUNDED}


RECORDS = [
    OpRecord(
        "linalg_cholesky_ex",
        of_squares(definite, {"upper": True}, {"check_errors": True}),
        _with_info,
        errors=square_errors,
        torch="linalg.cholesky_ex",
        **_CHOLESKY,
    ),
    OpRecord(
        "linalg_cholesky",
        of_squares(definite, {"upper": True}),
        _cholesky,
        errors=_indefinite,
        torch="linalg.cholesky",
        **_CHOLESKY,
    ),
    OpRecord(
        "cholesky",
        of_squares(definite, {"upper": True}),
        _cholesky,
        errors=_indefinite,
        **_CHOLESKY,
    ),
    OpRecord(
        "linalg_qr",
        _wide_or_reduced,
        check=_check_qr,
        errors=_mode_errors,
        torch="linalg.qr",
        **_ROUNDED,
    ),
    OpRecord("qr", _modes(True), check=_check_qr, errors=matrix_errors, **_ROUNDED),
    OpRecord(
        "geqrf",
        of_rectangles(),
        check=_check_compact,
        gradient=False,
        errors=matrix_errors,
        **_ROUNDED,
    ),
    OpRecord(
        "linalg_householder_product",
        _compact,
        lambda a, tau: _product(a, tau)[..., :, : a.shape[-1]],
        errors=_product_errors,
        torch="linalg.householder_product",
        **_ROUNDED,
    ),
    OpRecord(
        "orgqr",
        _compact,
        lambda a, tau: _product(a, tau)[..., :, : a.shape[-1]],
        errors=_product_errors,
        **_ROUNDED,
    ),
    OpRecord("ormqr", _ormqr_samples, _ormqr, errors=_ormqr_errors, **_ROUNDED),
    OpRecord(
        "linalg_lu_factor_ex",
        of_rectangles({}, {"check_errors": True}),
        check=_check_lu,
        errors=matrix_errors,
        torch="linalg.lu_factor_ex",
        **_ROUNDED,
    ),
    OpRecord(
        "linalg_lu_factor",
        of_rectangles(),
        check=_check_lu,
        errors=_singular,
        torch="linalg.lu_factor",
        **_ROUNDED,
    ),
    OpRecord("lu", of_rectangles(), check=_check_lu, errors=_singular, **_ROUNDED),
    OpRecord(
        "linalg_lu",
        of_rectangles(),
        check=_check_unpacked,
        errors=matrix_errors,
        torch="linalg.lu",
        **_ROUNDED,
    ),
    OpRecord(
        "pivots_to_permutation",
        _pivots,
        _permuted,
        gradient=False,
        torch="",
        dtypes=MATRICES[:1],
    ),
    OpRecord("lu_unpack", _packed, check=_check_unpacked, errors=_unpack_errors, **_ROUNDED),
    OpRecord(
        "linalg_ldl_factor_ex",
        _ldl_samples,
        errors=square_errors,
        torch="linalg.ldl_factor_ex",
        **_LDL,
    ),
    OpRecord(
        "linalg_ldl_factor",
        _ldl_samples,
        errors=square_errors,
        torch="linalg.ldl_factor",
        **_LDL,
    ),
]
