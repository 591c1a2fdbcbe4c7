"""Sums of the columns of narrow rows, and of complex numbers, whose parts are two such columns."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tensorplug as tp

cpu_features = pytest.importorskip(
    "tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built"
)

# Around vectors, the blocks that are added up in single precision, and what threads share.
ROWS = [17, 31, 64, 65, 513, 1365, 1366, 4096, 40_000]

pytestmark = pytest.mark.usefixtures("threads")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("width", range(1, 11))
def test_columns(dtype: str, width: int) -> None:
    rng = np.random.default_rng(width)
    for rows in ROWS:
        # Whole numbers, whose sums are exact in any order.
        array = rng.integers(-90, 90, (rows, width)).astype(dtype)
        padded = np.zeros((rows, width + 1), dtype)
        padded[:, 1:] = array
        for one in (array, array[::-1], padded[:, 1:], np.asfortranarray(array)):
            np.testing.assert_array_equal(tp.from_numpy(one.copy("K")).sum(0).numpy(), one.sum(0))
            tensor = tp.from_numpy(padded)[:, 1:] if one.base is padded else tp.from_numpy(array)
            expected = array.sum(0)
            np.testing.assert_array_equal(tensor.sum(0, keepdim=True).numpy(), expected[None])
            if dtype != "int64":
                exact = array.astype(float).mean(0)
                np.testing.assert_allclose(tensor.mean(0).numpy(), exact, 1e-6, 1e-6)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex(dtype: str) -> None:
    rng = np.random.default_rng(0)
    for shape in (
        (),
        (1,),
        (5,),
        (40_001,),
        (3, 700),
        (700, 3),
        (4, 50, 30),
        (2, 0, 3),
        (6, 5, 4, 3),
    ):
        parts = rng.integers(-90, 90, (2, *shape))
        array = np.asarray(parts[0] + 1j * parts[1], dtype)
        orders = {tuple(range(array.ndim)), tuple(range(array.ndim))[::-1]}
        for order in orders:
            one = array.transpose(tuple(np.argsort(order))).copy().transpose(order)
            tensor = tp.from_numpy(one)
            for count in range(array.ndim + 1):
                for dims in itertools.combinations(range(array.ndim), count):
                    axes = dims or tuple(range(array.ndim))
                    for keepdim in (False, True):
                        found = tensor.sum(dims, keepdim).numpy()
                        np.testing.assert_array_equal(found, one.sum(axes, keepdims=keepdim))
                        assert found.dtype == one.dtype
                    if one.size:
                        found = tensor.mean(dims).numpy()
                        np.testing.assert_allclose(found, one.mean(axes), 1e-5, 1e-5)
            if one.ndim:
                part = tensor[..., ::2].conj()
                np.testing.assert_array_equal(part.sum(0).numpy(), one[..., ::2].conj().sum(0))


@pytest.mark.parametrize("width", [2, 3, 8])
def test_special_numbers_stay_in_their_columns(width: int) -> None:
    for row in (0, 3, 999):
        array = np.ones((1000, width), np.float32)
        array[row, 1] = np.nan
        expected = np.full(width, 1000.0)
        expected[1] = np.nan
        np.testing.assert_array_equal(tp.from_numpy(array).sum(0).numpy(), expected)


def test_any_and_all_of_bytes() -> None:
    for size in (1, 31, 33, 1000, 40_000):
        for place in (0, size // 2, size - 1):
            array = np.zeros(size, np.uint8)
            array[place] = 200
            for one in (array, 200 - array):
                tensor = tp.from_numpy(one)
                for found, expected in ((tensor.any(), one.any()), (tensor.all(), one.all())):
                    assert found.dtype is tp.uint8
                    assert int(found) == int(expected)
