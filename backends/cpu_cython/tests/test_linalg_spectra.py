"""Spectra of many small matrices, beside each other, against NumPy's in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorplug as tp

pytest.importorskip("tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built")

COUNTS = [1, 7, 8, 15, 16, 17, 33]
PRECISION = {np.float32: 4e-6, np.float64: 1e-14}
#: By what matrices are multiplied, the squares of the largest and smallest not being numbers any more.
SCALES = [1.0, 1e30, 1e-30]


def matrices(count: int, rows: int, columns: int, kind: str) -> Any:
    """Return matrices in double precision, the numbers of which single precision has, too."""
    rng = np.random.default_rng(100 * rows + 10 * columns + count)
    a = rng.standard_normal((count, rows, columns))
    if kind == "equal":
        a[:] = np.eye(rows, columns)
    elif kind == "zero":
        a[::2] = 0
    elif kind == "rank one":
        a = rng.standard_normal((count, rows, 1)) * rng.standard_normal((count, 1, columns))
    elif kind == "graded":
        a *= 10.0 ** -np.arange(columns)
    elif kind == "clusters":
        a = np.round(a)
    return a.astype(np.float32).astype(np.float64)


KINDS = ["random", "equal", "zero", "rank one", "graded", "clusters"]


def close(found: Any, expected: Any, largest: Any, dtype: Any) -> None:
    # Relative to the largest of each matrix.
    np.testing.assert_allclose(found / largest, expected / largest, atol=PRECISION[dtype])


@pytest.mark.parametrize("dtype", PRECISION)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", range(1, 10))
def test_symmetric(n: int, kind: str, dtype: Any) -> None:
    for count, half, scale in zip(COUNTS, "LULULUL", SCALES * 3, strict=False):
        a = matrices(count, n, n, kind)
        whole = np.tril(a) + np.tril(a, -1).mT if half == "L" else np.triu(a) + np.triu(a, 1).mT
        given = tp.from_numpy((a * scale).astype(dtype))
        values, vectors = (t.numpy().astype(float) for t in tp.linalg.eigh(given, half))
        largest = max(np.abs(whole).max(), 1e-3)
        expected = np.linalg.eigvalsh(whole)
        close(values / scale, expected, largest, dtype)
        close(
            tp.linalg.eigvalsh(given, half).numpy().astype(float) / scale, expected, largest, dtype
        )
        close(whole @ vectors, vectors * (values / scale)[:, None], largest, dtype)
        close(vectors.mT @ vectors, np.broadcast_to(np.eye(n), a.shape), 1, dtype)


@pytest.mark.parametrize("dtype", PRECISION)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8, 9])
@pytest.mark.parametrize("columns", [1, 2, 4, 5, 7, 8])
def test_singular(rows: int, columns: int, kind: str, dtype: Any) -> None:
    least = min(rows, columns)
    for count, whole, scale in zip(COUNTS, [False, True] * 4, SCALES * 3, strict=False):
        a = matrices(count, rows, columns, kind)
        given = tp.from_numpy((a * scale).astype(dtype))
        found = tp.linalg.svd(given, whole)
        U, S, Vh = (t.numpy().astype(float) for t in found)
        largest = max(np.abs(a).max(), 1e-3)
        expected = np.linalg.svd(a, compute_uv=False)
        close(S / scale, expected, largest, dtype)
        close(tp.linalg.svdvals(given).numpy().astype(float) / scale, expected, largest, dtype)
        assert (np.diff(S) <= 0).all()
        assert U.shape == (count, rows, rows if whole else least)
        assert Vh.shape == (count, columns if whole else least, columns)
        close(U[..., :least] * (S / scale)[:, None] @ Vh[:, :least], a, largest, dtype)
        for side in (U, Vh.mT):
            identity = np.broadcast_to(np.eye(side.shape[-1]), (count, *side.shape[-1:] * 2))
            close(side.mT @ side, identity, 1, dtype)


@pytest.mark.parametrize("dtype", PRECISION)
def test_diagonal_matrices_have_exact_spectra(dtype: Any) -> None:
    a = np.random.default_rng(0).standard_normal((20, 6)).astype(dtype)
    given = tp.from_numpy(a[..., None] * np.eye(6, dtype=dtype))
    np.testing.assert_array_equal(tp.linalg.eigvalsh(given).numpy(), np.sort(a))
    np.testing.assert_allclose(
        tp.linalg.svdvals(given).numpy(), np.sort(np.abs(a))[:, ::-1], 4 * np.finfo(dtype).eps
    )


def outcome(backend: str, function: Any, a: Any) -> str:
    with tp.prefer(backend):
        try:
            function(tp.from_numpy(a))
        except RuntimeError as error:
            return str(error)
    return "found"


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_left_to_lapack(value: float) -> None:
    a = matrices(20, 4, 4, "random")
    a[17, 2, 1] = value
    for function in (tp.linalg.svd, tp.linalg.svdvals):
        expected = outcome("cpu_numpy", function, a)
        assert expected != "found"
        assert outcome("cpu_cython", function, a) == expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("kind", [*KINDS, "rotations"])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 17])
def test_general(n: int, kind: str, dtype: Any) -> None:
    a = matrices(3, n, n, "random" if kind == "rotations" else kind)
    if kind == "rotations":  # of which no eigenvalue is real
        a = a - a.mT
    if dtype in (np.complex64, np.complex128):
        a = a + 1j * matrices(3, n, n, kind if kind != "rotations" else "random")[::-1]
    a = a.astype(dtype)
    values, vectors = (t.numpy() for t in tp.linalg.eig(tp.from_numpy(a)))
    alone = tp.linalg.eigvals(tp.from_numpy(a)).numpy()
    single = np.finfo(dtype).eps > 1e-10
    assert (
        values.dtype == vectors.dtype == alone.dtype == (np.complex64 if single else np.complex128)
    )
    precision = {"rtol": 0, "atol": (3e-5 if single else 1e-13) * max(1.0, np.abs(a).max()) * n}
    np.testing.assert_allclose(a @ vectors, vectors * values[:, None], **precision)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=-2), 1, rtol=1e-5)
    np.testing.assert_allclose(values.sum(-1), np.trace(a, axis1=-2, axis2=-1), **precision)
    if kind == "random":  # elsewhere they are many times, and so ill-conditioned
        order = [np.sort_complex(np.round(v, 3)) for v in (values, alone)]
        np.testing.assert_allclose(order[0], order[1], atol=3e-3)


def test_general_in_other_layouts_and_what_is_refused() -> None:
    a = np.random.default_rng(0).standard_normal((2, 12, 12))
    expected = np.linalg.eigvals(a.mT[:, ::2, ::2])
    found = tp.linalg.eigvals(tp.from_numpy(a).mT[:, ::2, ::2]).numpy()
    np.testing.assert_allclose(np.sort_complex(found), np.sort_complex(expected), atol=1e-10)
    assert tp.linalg.eig(tp.zeros(0, 3, 3)).eigenvectors.shape == (0, 3, 3)
    with pytest.raises(RuntimeError):
        tp.linalg.eigvals(tp.full((2, 2), float("nan")))
