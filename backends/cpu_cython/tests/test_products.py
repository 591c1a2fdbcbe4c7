"""Products of integers, and of matrices of few columns with a vector, against NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built")
import tensorplug as tp
from tensorplug_cpu_cython import products

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
            found = products.integers(x, y)
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
