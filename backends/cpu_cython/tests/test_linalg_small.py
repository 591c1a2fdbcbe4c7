"""Many small equations beside each other, against LAPACK one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import linalg

import tensorplug as tp

pytest.importorskip("tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built")

# Around the matrices that are beside each other, and from which they are.
COUNTS = [1, 7, 8, 15, 16, 17, 33]
TOLERANCE = {np.float32: 2e-3, np.float64: 1e-9}


def matrices(count: int, n: int, dtype: Any) -> Any:
    """Return matrices whose rows have to be exchanged."""
    rng = np.random.default_rng(100 * n + count)
    return rng.permuted(rng.standard_normal((count, n, n)) + 4 * np.eye(n), axis=1).astype(dtype)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("n", range(1, 14))
def test_factors(n: int, dtype: Any) -> None:
    for count in COUNTS:
        a = matrices(count, n, dtype)
        factors, pivots = (t.numpy() for t in tp.linalg.lu_factor(tp.from_numpy(a)))
        for k in range(count):
            expected, exchanged = linalg.lu_factor(a[k])
            np.testing.assert_array_equal(pivots[k] - 1, exchanged)
            np.testing.assert_allclose(factors[k], expected, TOLERANCE[dtype], TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_solutions(n: int, dtype: Any) -> None:
    for count in COUNTS:
        a = matrices(count, n, dtype)
        exact = np.linalg.inv(a.astype(np.float64))
        for columns in (1, 3, 8, 9, 20):
            b = np.random.default_rng(columns).standard_normal((count, n, columns)).astype(dtype)
            found = tp.linalg.solve(tp.from_numpy(a), tp.from_numpy(b)).numpy()
            scale = np.abs(exact).max((1, 2), keepdims=True)
            np.testing.assert_allclose(found / scale, exact @ b / scale, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("count", [1, 20])
def test_pivots_whose_reciprocal_is_infinite(dtype: Any, count: int) -> None:
    a = matrices(count, 3, dtype) * (1 + 1j if np.issubdtype(dtype, np.complexfloating) else 1)
    unit = 4096 * np.finfo(dtype).smallest_subnormal
    small = (a * unit).astype(dtype)
    factors, pivots = (t.numpy() for t in tp.linalg.lu_factor(tp.from_numpy(small)))
    for k in range(count):
        expected, exchanged = linalg.lu_factor(a[k])
        np.testing.assert_array_equal(pivots[k] - 1, exchanged)
        np.testing.assert_allclose(np.tril(factors[k], -1), np.tril(expected, -1), atol=0.01)
        np.testing.assert_allclose(np.triu(factors[k]) / unit, np.triu(expected), atol=0.01)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_singular_matrices_among_others(dtype: Any) -> None:
    a = matrices(40, 3, dtype)
    a[3] = 0
    a[9, :, 1] = 0
    a[17] = [[1, 2, 3], [2, 4, 7], [0, 0, 0]]
    a[20, 1, 1] = np.nan
    a[21, :, 0] = np.inf, 1, 2
    factors, pivots, info = (t.numpy() for t in tp.linalg.lu_factor_ex(tp.from_numpy(a)))
    for k in range(len(a)):  # one by one they go another way
        alone = [t.numpy() for t in tp.linalg.lu_factor_ex(tp.from_numpy(a[k]))]
        np.testing.assert_allclose(factors[k], alone[0], TOLERANCE[dtype], TOLERANCE[dtype])
        np.testing.assert_array_equal(pivots[k], alone[1])
        assert info[k] == alone[2]
    assert [info[3], info[9], info[17]] == [1, 2, 2]
    with pytest.raises(tp.linalg.LinAlgError, match="singular"):
        tp.linalg.inv(tp.from_numpy(a))
