"""Products of integers, and of matrices of few columns with a vector, against NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built")
import tensorplug as tp
from tensorplug_cpu_cython import matmul_products

INTEGERS = [np.int64, np.int32, np.int16, np.int8, np.uint8]
LAYOUTS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "part": lambda a: np.pad(a, [(1, 2)] * a.ndim)[(slice(1, -2),) * a.ndim],
    "every second": lambda a: np.repeat(a, 2, -1)[..., ::2],
}


def numbers(shape: tuple[int, ...], dtype: Any) -> Any:
    """Return numbers from all of a dtype, whose products wrap."""
    info = np.iinfo(dtype)
    rng = np.random.default_rng(sum(shape))
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


# Around a vector of the widest level, four of them, and pairs of rows.
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("columns", [1, 2, 7, 15, 16, 17, 63, 64, 65, 200, 300])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_integers(dtype: Any, columns: int, layout: str) -> None:
    lay = LAYOUTS[layout]
    for rows, inner in itertools.product((1, 2, 5), (1, 3, 40)):
        a, b = lay(numbers((rows, inner), dtype)), lay(numbers((inner, columns), dtype))
        left, right = lay(numbers((rows,), dtype)), lay(numbers((inner,), dtype))
        for x, y in ((a, b), (b.T, right), (right, b), (b.T, a.T), (a.T, left), (right, right)):
            found = matmul_products.integers(x, y)
            if found is None:
                found = tp.matmul(tp.from_numpy(x), tp.from_numpy(y)).numpy()
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, x @ y)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_of_many_dimensions_and_none(dtype: Any) -> None:
    for left, right in (
        ((3, 2, 5), (5, 4)),
        ((3, 2, 5), (3, 5, 4)),
        ((0, 5), (5, 4)),
        ((3, 0), (0, 4)),
        ((0,), (0,)),
    ):
        x, y = numbers(left, dtype), numbers(right, dtype)
        found = tp.matmul(tp.from_numpy(x), tp.from_numpy(y)).numpy()
        np.testing.assert_array_equal(found, x @ y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("columns", [1, 2, 3, 5, 10, 11, 64])
def test_few_columns(dtype: Any, columns: int, layout: str) -> None:
    rng = np.random.default_rng(columns)
    for rows in (1, 255, 256, 259, 5000):
        a = LAYOUTS[layout](rng.standard_normal((rows, columns)).astype(dtype))
        b = LAYOUTS[layout](rng.standard_normal(columns).astype(dtype))
        found = tp.mv(tp.from_numpy(a), tp.from_numpy(b)).numpy()
        assert found.dtype == dtype
        exact = a.astype(np.float64) @ b.astype(np.float64)
        np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-5)


def test_sizes_that_do_not_fit() -> None:
    for dtype in (np.float64, np.float32, np.int64, np.int8):
        with pytest.raises(RuntimeError, match=r"matmul|mv"):
            tp.matmul(tp.from_numpy(np.ones((300, 4), dtype)), tp.from_numpy(np.ones(5, dtype)))


# Around vectors of each level, some rows at a time, and the largest that count as small.
SIDES = (1, 2, 3, 5, 8, 9, 16, 17, 31, 33, 48, 64)
STACKED = {
    "one behind the other": lambda a: a,
    "transposed": lambda a: np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2),
    "part": LAYOUTS["part"],
    "every second": LAYOUTS["every second"],
    "backwards": lambda a: np.ascontiguousarray(a[..., ::-1, ::-1])[..., ::-1, ::-1],
    "batches last": lambda a: np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 0, -1)), -1, 0),
    "one for all": lambda a: np.broadcast_to(a[:1], a.shape),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("left", STACKED)
@pytest.mark.parametrize("right", STACKED)
def test_small_matrices(dtype: Any, left: str, right: str, threads: int) -> None:
    rng = np.random.default_rng(0)
    for columns in SIDES:
        rows, inner = rng.choice(SIDES, 2)
        count = int(rng.integers(1, 40))
        a = STACKED[left](rng.standard_normal((count, rows, inner)).astype(dtype))
        b = STACKED[right](rng.standard_normal((count, inner, columns)).astype(dtype))
        found = matmul_products.batches(a, b)
        if found is None:
            assert dtype == np.float64 or columns > 16
            continue
        assert found.dtype == dtype
        np.testing.assert_allclose(found, a.astype(float) @ b.astype(float), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_small_matrices_in_batches_that_broadcast(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    for left, right in (
        ((4, 5), (7, 5, 6)),
        ((7, 4, 5), (5, 6)),
        ((3, 1, 4, 5), (2, 5, 6)),
        ((3, 2, 4, 5), (3, 1, 5, 6)),
        ((1, 1, 4, 5), (3, 2, 5, 6)),
        ((0, 4, 5), (0, 5, 6)),
        ((3, 0, 5), (3, 5, 6)),
        ((3, 4, 0), (3, 0, 6)),
    ):
        a, b = rng.standard_normal(left).astype(dtype), rng.standard_normal(right).astype(dtype)
        found = tp.matmul(tp.from_numpy(a), tp.from_numpy(b)).numpy()
        assert found.shape == (a @ b).shape
        np.testing.assert_allclose(found, a @ b, rtol=1e-5, atol=1e-5)
    with pytest.raises(RuntimeError, match="must match the size"):
        tp.matmul(tp.ones(2, 4, 5), tp.ones(3, 5, 6))


@pytest.mark.parametrize("count", [1, 2, 5, 17, 1000])
def test_matrices_smaller_than_a_vector(count: int, threads: int) -> None:
    rng = np.random.default_rng(0)
    for rows, columns in itertools.product((1, 2, 3), (1, 2, 3)):
        a, b = rng.standard_normal((count, rows, 40)), rng.standard_normal((count, 40, columns))
        for dtype in (np.float32, np.float64):
            found = matmul_products.batches(a.astype(dtype), b.astype(dtype))
            np.testing.assert_allclose(found, a @ b, rtol=1e-4, atol=1e-4)


def test_numbers_beside_small_matrices_do_not_count() -> None:
    """Whole vectors are read and written, but what stands out over the rows has no effect."""
    wide = np.full((5, 3, 40), np.nan, np.float32)
    wide[:, :, :10] = 1
    found = matmul_products.batches(np.ones((5, 2, 3), np.float32), wide[:, :, :10])
    np.testing.assert_array_equal(found, np.full((5, 2, 10), 3, np.float32))
