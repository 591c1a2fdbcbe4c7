"""Records of eigenvalues, singular values and what they define.

Vectors are determined up to a phase: they are checked by what they have to satisfy, and
differentiated in tests/ops/test_linalg_gradients.py, through what does not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import DType, complex128

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
    regular,
    square_errors,
    symmetric,
)

_ROUNDED: dict[str, Any] = {"dtypes": MATRICES, "rtol": DIGITS, "atol": DIGITS}


def _check_eigh(result: Any, sample: Sample) -> None:
    (A,) = exact(sample.args[0])
    w, V = exact(*result)
    assert (np.diff(w) >= 0).all()
    assert_near((V * w[..., None, :]) @ adjoint(V), A, sample.args[0], "V diag(w) V^H = A")
    assert_near(adjoint(V) @ V, np.broadcast_to(np.eye(A.shape[-1]), A.shape), sample.args[0], "V")


def _eigvalsh(A: Any, UPLO: Any = "L") -> Any:
    return np.linalg.eigvalsh(A, UPLO)


def _side_errors(make: Any) -> Iterator[ErrorSample]:
    yield from square_errors(make)
    yield ErrorSample(Sample(make(2, 2), "X"), RuntimeError, "'L' or 'U'")


def _check_eig(result: Any, sample: Sample) -> None:
    (A,) = exact(sample.args[0])
    w, V = exact(*result)
    assert_near(A @ V, V * w[..., None, :], sample.args[0], "A V = V diag(w)")
    norms = np.linalg.norm(V, axis=-2)
    assert_near(norms, np.ones_like(norms), sample.args[0], "norms")


def _check_eigenvalues(result: Any, sample: Sample) -> None:
    (A,) = exact(sample.args[0])
    (w,) = exact(result)
    expected = np.linalg.eigvals(A)
    assert w.shape == expected.shape
    # Their order is arbitrary: each has a partner.
    distance = np.abs(w[..., :, None] - expected[..., None, :])
    if distance.size:
        assert distance.min(-1).max() < 1e-3
    assert result.dtype.is_complex


def _finite_errors(make: Any) -> Iterator[ErrorSample]:
    yield from square_errors(make)
    yield ErrorSample(Sample(make(2, 2) / 0), RuntimeError, "infs or NaNs")


_VECTORS: dict[str, Any] = {"gradient": False, **_ROUNDED}


# --- singular values --------------------------------------------------------------------------
def _check_svd(result: Any, sample: Sample) -> None:
    (A,) = exact(sample.args[0])
    U, S, Vh = exact(*result)
    k = S.shape[-1]
    product = (U[..., :, :k] * S[..., None, :]) @ Vh[..., :k, :]
    assert_near(product, A, sample.args[0], "U diag(S) V^H = A")
    assert (np.diff(S) <= 0).all()
    n = U.shape[-1]
    assert_near(
        adjoint(U) @ U, np.broadcast_to(np.eye(n), (*U.shape[:-2], n, n)), sample.args[0], "U"
    )


def _check_old_svd(result: Any, sample: Sample) -> None:
    U, S, V = result
    _check_svd((U, S, V.mH), sample)


def _svdvals(A: Any, **options: Any) -> Any:
    return np.linalg.svd(A, compute_uv=False)


def _rank_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield from of_rectangles({}, {"atol": 0.5}, {"rtol": 0.3})(make, dtype)
    yield Sample(definite(make), hermitian=True)
    yield Sample(dense(make, 3, 1) @ dense(make, 1, 3), label="of rank 1")


def _bound(A: Any, S: Any, atol: Any, rtol: Any, eps: float) -> Any:
    if rtol is None:
        rtol = 0.0 if atol else eps * max(A.shape[-2:])
    return np.maximum(atol or 0.0, rtol * S.max(-1, keepdims=True, initial=0))


def _matrix_rank(A: Any, *, hermitian: bool = False, atol: Any = None, rtol: Any = None) -> Any:
    S = np.linalg.svd(A, compute_uv=False)
    return (_bound(A, S, atol, rtol, 1.2e-7) < S).sum(-1)


def _pinv(A: Any, *, hermitian: bool = False, atol: Any = None, rtol: Any = None) -> Any:
    U, S, Vh = np.linalg.svd(A, full_matrices=False)
    keep = _bound(A, S, atol, rtol, 1.2e-7) < S
    inverse = np.where(keep, 1 / np.where(keep, S, 1), 0)
    return (adjoint(Vh) * inverse[..., None, :]) @ adjoint(U)


def _pinv_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    # The derivative is that of constant rank: nothing may be cut off that is not zero.
    yield from of_rectangles({}, {"atol": 1e-4})(make, dtype)


def _rank_errors(make: Any) -> Iterator[ErrorSample]:
    yield from matrix_errors(make)
    yield ErrorSample(Sample(make(2, 2), atol=make(dtype=complex128)), RuntimeError, "complex type")


RECORDS = [
    OpRecord(
        "linalg_eigh",
        of_squares(symmetric, {"UPLO": "U"}),
        check=_check_eigh,
        errors=_side_errors,
        torch="linalg.eigh",
        **_VECTORS,
    ),
    OpRecord(
        "linalg_eigvalsh",
        of_squares(symmetric, {"UPLO": "U"}),
        _eigvalsh,
        errors=_side_errors,
        torch="linalg.eigvalsh",
        **_VECTORS,
    ),
    OpRecord(
        "linalg_eig",
        of_squares(regular),
        check=_check_eig,
        errors=_finite_errors,
        torch="linalg.eig",
        **_VECTORS,
    ),
    OpRecord(
        "linalg_eigvals",
        of_squares(regular),
        check=_check_eigenvalues,
        errors=_finite_errors,
        torch="linalg.eigvals",
        **_VECTORS,
    ),
    OpRecord(
        "linalg_svd",
        of_rectangles({}, {"full_matrices": False}),
        check=_check_svd,
        errors=matrix_errors,
        torch="linalg.svd",
        **_VECTORS,
    ),
    OpRecord("svd", of_rectangles(), check=_check_old_svd, errors=matrix_errors, **_VECTORS),
    OpRecord(
        "linalg_svdvals",
        of_rectangles(),
        _svdvals,
        errors=matrix_errors,
        torch="linalg.svdvals",
        **_ROUNDED,
    ),
    OpRecord(
        "linalg_matrix_rank",
        _rank_samples,
        _matrix_rank,
        errors=_rank_errors,
        torch="linalg.matrix_rank",
        **_VECTORS,
    ),
    OpRecord(
        "linalg_pinv",
        _pinv_samples,
        _pinv,
        errors=_rank_errors,
        torch="linalg.pinv",
        **_ROUNDED,
    ),
    OpRecord(
        "pinverse",
        of_rectangles(),
        lambda A, rcond=1e-15: _pinv(A, rtol=rcond),
        errors=matrix_errors,
        **_ROUNDED,
    ),
]
