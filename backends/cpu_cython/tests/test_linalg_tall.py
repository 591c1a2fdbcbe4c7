"""Factors and solutions of matrices with far more rows than columns, or columns than rows, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import tensorplug as tp

pytest.importorskip("tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built")

#: Around the sizes of blocks, and of the columns that they may have.
SIZES = [
    (256, 1),
    (258, 2),
    (515, 3),
    (770, 4),
    (257, 5),
    (300, 8),
    (511, 7),
    (512, 32),
    (513, 1),
    (768, 33),
    (3000, 16),
]
PRECISION = {np.float32: 1e-5, np.float64: 1e-13}
KINDS = ["random", "rank deficient", "zero", "small", "graded", "zero rows", "huge"]


def matrix(rows: int, columns: int, kind: str) -> Any:
    a = np.random.default_rng(rows + columns).standard_normal((rows, columns))
    if kind == "rank deficient":
        a[:, -1] = a[:, 0]
    elif kind == "zero":
        a[:] = 0
    elif kind == "small":
        a *= 1e-20
    elif kind == "huge":
        a *= 1e25
    elif kind == "graded":
        a *= 10.0 ** -np.sqrt(np.arange(columns))
    elif kind == "zero rows":
        a[: rows // 2] = 0
    return a.astype(np.float32).astype(np.float64)


@pytest.mark.parametrize("dtype", PRECISION)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_singular(size: tuple[int, int], kind: str, dtype: Any) -> None:
    tall = matrix(*size, kind)
    largest, close = max(np.abs(tall).max(), 1e-30), PRECISION[dtype] * 10
    for a in (tall, tall.T):
        given = tp.from_numpy(a.astype(dtype))
        expected = np.linalg.svd(a, compute_uv=False) / largest
        U, S, Vh = (t.numpy().astype(float) for t in tp.linalg.svd(given, full_matrices=False))
        bound = close * max(1, expected[0])
        np.testing.assert_allclose(S / largest, expected, rtol=0, atol=bound)
        alone = tp.linalg.svdvals(given).numpy() / largest
        np.testing.assert_allclose(alone, expected, rtol=0, atol=bound)
        np.testing.assert_allclose((U * (S / largest)) @ Vh, a / largest, rtol=0, atol=bound)
        np.testing.assert_allclose(U.T @ U, np.eye(len(S)), rtol=0, atol=close)
        np.testing.assert_allclose(Vh @ Vh.T, np.eye(len(S)), rtol=0, atol=close)


@pytest.mark.parametrize("dtype", PRECISION)
@pytest.mark.parametrize("driver", ["gels", "gelsd", "gelss", "gelsy"])
@pytest.mark.parametrize("kind", ["random", "zero rows"])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_least_squares(size: tuple[int, int], kind: str, driver: str, dtype: Any) -> None:
    a = matrix(*size, kind)
    for columns in (1, 3):
        b = matrix(size[0], columns + 40, "random")[:, :columns]
        found = tp.linalg.lstsq(
            tp.from_numpy(a.astype(dtype)), tp.from_numpy(b.astype(dtype)), driver=driver
        )
        expected, residuals, rank, values = np.linalg.lstsq(a, b)
        close = PRECISION[dtype] * 10
        np.testing.assert_allclose(found.solution.numpy(), expected, rtol=0, atol=close)
        if driver != "gels":
            assert int(found.rank) == rank
        if driver in ("gelsd", "gelss"):
            np.testing.assert_allclose(found.singular_values.numpy(), values, rtol=close)
        if driver != "gelsy":
            np.testing.assert_allclose(found.residuals.numpy(), residuals, rtol=close)


@pytest.mark.parametrize("dtype", PRECISION)
@pytest.mark.parametrize("driver", ["gels", "gelsy"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("batch", [(), (1,), (2, 3)], ids=str)
def test_least_squares_of_any_shape(
    batch: tuple[int, ...], transposed: bool, driver: str, dtype: Any
) -> None:
    rng = np.random.default_rng(0)
    close = PRECISION[dtype] * 100
    for m, n in ((1, 1), (3, 3), (7, 3), (3, 7), (1, 5), (40, 9), (9, 40)):
        for k in (1, 2, 50):
            shape = (*batch, n, m) if transposed else (*batch, m, n)
            a, b = rng.standard_normal(shape), rng.standard_normal((*batch, m, k))
            a = a.swapaxes(-1, -2) if transposed else a
            expected = np.linalg.pinv(a) @ b
            found = tp.linalg.lstsq(
                *[tp.from_numpy(one.astype(dtype)) for one in (a, b)], driver=driver
            )
            np.testing.assert_allclose(
                found.solution.numpy(),
                expected,
                rtol=0,
                atol=close * max(1, np.abs(expected).max()),
            )
            if driver == "gelsy":
                np.testing.assert_array_equal(found.rank.numpy(), np.full(batch, min(m, n)))
            elif m > n:
                residuals = np.square(a @ expected - b).sum(-2)
                np.testing.assert_allclose(found.residuals.numpy(), residuals, rtol=close * 10)


@pytest.mark.parametrize("dtype", PRECISION)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_least_solutions_of_wide_systems(size: tuple[int, int], dtype: Any) -> None:
    a = matrix(*size, "random").T
    for columns in (1, 3, 70):
        b = np.random.default_rng(1).standard_normal((size[1], columns))
        given = [tp.from_numpy(np.ascontiguousarray(one, dtype)) for one in (a, b)]
        kept = given[1].clone()
        found = tp.linalg.lstsq(*given, driver="gels")
        expected = np.linalg.pinv(a) @ b
        close = PRECISION[dtype] * 10 * max(1, np.abs(expected).max())
        np.testing.assert_allclose(found.solution.numpy(), expected, rtol=0, atol=close)
        assert found.residuals.shape == (0,)
        assert given[1].equal(kept)


@pytest.mark.parametrize("dtype", PRECISION)
def test_least_squares_of_lower_rank(dtype: Any) -> None:
    # The solution is the shortest of those that there are.
    rng = np.random.default_rng(0)
    a = np.stack([np.outer(np.arange(1.0, 6), rng.standard_normal(4)), rng.standard_normal((5, 4))])
    b = rng.standard_normal((2, 5, 2))
    found = tp.linalg.lstsq(
        *[tp.from_numpy(one.astype(dtype)) for one in (a, b)], rcond=1e-4, driver="gelsy"
    )
    assert found.rank.tolist() == [1, 4]
    expected = np.linalg.pinv(a, rcond=1e-4) @ b
    np.testing.assert_allclose(
        found.solution.numpy(), expected, rtol=0, atol=100 * PRECISION[dtype]
    )


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_numbers_that_are_not_finite(number: float) -> None:
    a = matrix(300, 4, "random")
    a[200, 2] = number
    for solve in (tp.linalg.svdvals, lambda x: tp.linalg.svd(x, full_matrices=False)):
        with pytest.raises(tp.linalg.LinAlgError):
            solve(tp.from_numpy(a))


@pytest.mark.parametrize("dtype", PRECISION)
@pytest.mark.parametrize("kind", ["random", "rank deficient", "zero", "graded", "zero rows"])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_qr(size: tuple[int, int], kind: str, dtype: Any) -> None:
    a = matrix(*size, kind)
    Q, R = (t.numpy().astype(float) for t in tp.linalg.qr(tp.from_numpy(a.astype(dtype))))
    close = PRECISION[dtype] * 10
    np.testing.assert_allclose(Q @ R, a, rtol=0, atol=close * max(1, np.abs(a).max()))
    np.testing.assert_allclose(Q.T @ Q, np.eye(size[1]), rtol=0, atol=close)
    np.testing.assert_array_equal(np.tril(R, -1), 0)
    if kind == "random":  # the signs are LAPACK's
        expected = np.linalg.qr(a)
        np.testing.assert_allclose(Q, expected.Q, rtol=0, atol=close * 10)
        np.testing.assert_allclose(R, expected.R, rtol=0, atol=close * 10 * np.abs(a).sum())


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8])
def test_few_rows(rows: int, dtype: Any) -> None:
    rng = np.random.default_rng(rows)
    a = rng.standard_normal((rows, 40 * rows)) + 1j * rng.standard_normal((rows, 40 * rows))
    a = (a if np.dtype(dtype).kind == "c" else a.real).astype(dtype)
    factors, pivots = tp.linalg.lu_factor(tp.from_numpy(a))
    expected, order = scipy.linalg.lu_factor(a)
    close = 1e-4 if np.dtype(dtype).itemsize // (1 + (np.dtype(dtype).kind == "c")) == 4 else 1e-12
    np.testing.assert_allclose(factors.numpy(), expected, atol=close * 10)
    np.testing.assert_array_equal(pivots.numpy(), order[:rows] + 1)
    square = tp.from_numpy(a[:, :rows].copy())
    for sides in (a, a[:, :1].copy(), a[None]):
        lead = sides.ndim - 2
        given = tp.linalg.lu_factor(square.reshape((1,) * lead + (rows, rows)))
        found = tp.linalg.lu_solve(*given, tp.from_numpy(sides), adjoint=True).numpy()
        exact = np.linalg.solve(a[:, :rows].conj().T, sides)
        np.testing.assert_allclose(found, exact, atol=close * 100 * np.abs(exact).max())
