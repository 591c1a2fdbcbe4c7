"""Exponentials of small matrices, beside each other, against SciPy's in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import tensorplug as tp

pytest.importorskip("tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built")

COUNTS = [1, 15, 16, 17]
PRECISION = {np.float32: 1e-4, np.float64: 1e-11, np.complex64: 1e-4, np.complex128: 1e-11}
#: From such as need no squaring to such as need many, different ones beside each other.
SCALES = [1e-6, 0.1, 1.0, 10.0]


def close(a: Any, dtype: Any) -> None:
    if np.dtype(dtype).kind == "c":
        a = a + 0.5j * a[..., ::-1, ::-1].swapaxes(-1, -2)
    a = a.astype(np.complex64).astype(np.complex128)
    a = a if np.dtype(dtype).kind == "c" else a.real
    found = tp.matrix_exp(tp.from_numpy(a.astype(dtype))).numpy()
    expected = scipy.linalg.expm(a)
    largest = np.abs(expected).max((-2, -1), keepdims=True)
    assert found.dtype == dtype
    np.testing.assert_allclose(found / largest, expected / largest, rtol=0, atol=PRECISION[dtype])


@pytest.mark.parametrize("dtype", PRECISION)
@pytest.mark.parametrize("n", [1, 2, 3, 5, 10, 16, 17])
def test_random(n: int, dtype: Any) -> None:
    rng = np.random.default_rng(n)
    for count in COUNTS:
        scales = np.resize(SCALES, count)[:, None, None] / n
        close(rng.standard_normal((count, n, n)) * scales, dtype)
        close(np.zeros((count, n, n)), dtype)
    close(rng.standard_normal((2, 3, n, n)).swapaxes(-1, -2)[::-1] / n, dtype)


@pytest.mark.parametrize("dtype", PRECISION)
def test_far_from_normal(dtype: Any) -> None:
    # Its norm would ask for twenty squarings, its powers ask for none.
    close(np.array([[0.5, 1e6], [0.0, -0.25]]), dtype)


@pytest.mark.parametrize("dtype", PRECISION)
def test_not_finite_leaves_the_others_alone(dtype: Any) -> None:
    a = np.random.default_rng(0).standard_normal((9, 3, 3)).astype(dtype)
    expected = tp.matrix_exp(tp.from_numpy(a)).numpy()[1:]
    a[0] = np.finfo(dtype).max
    with np.errstate(all="ignore"):
        found = tp.matrix_exp(tp.from_numpy(a)).numpy()
    np.testing.assert_allclose(found[1:], expected, rtol=PRECISION[dtype], atol=PRECISION[dtype])
    assert not np.isfinite(found[0]).all()
