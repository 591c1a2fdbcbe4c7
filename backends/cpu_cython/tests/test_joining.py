"""Joined arrays, and new arrays full of one number."""

import numpy as np
import pytest

cpu_features = pytest.importorskip(
    "tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built"
)
from tensorplug_cpu_cython import copying, pointwise  # noqa: E402

pytestmark = pytest.mark.usefixtures("threads")


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.bool_, np.complex64])
@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("lengths", [(1,), (3, 1, 5), (2, 0, 2), (0, 0), (7,) * 50])
@pytest.mark.parametrize("side", [1, 4, 60])
def test_arrays_behind_each_other(dtype, dim, lengths, side):
    arrays = []
    for number, length in enumerate(lengths):
        shape = [side, side, side]
        shape[dim] = length
        arrays.append((np.arange(np.prod(shape)) % 97 + number).reshape(shape).astype(dtype))
    result = copying.cat(arrays, dim)
    np.testing.assert_array_equal(result, np.concatenate(arrays, dim))
    assert result.dtype == dtype
    assert result.flags.c_contiguous


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("count", [1, 2, 40])
@pytest.mark.parametrize("shape", [(5, 3), (0, 4), (200, 90), (1, 1)])
def test_stacked_arrays(shape, count, dim):
    arrays = [np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + k for k in range(count)]
    np.testing.assert_array_equal(copying.stack(arrays, dim), np.stack(arrays, dim))


def test_numbers_are_stacked():
    result = copying.stack([np.float32(1), np.array(2, np.float32)], 0)
    np.testing.assert_array_equal(result, [1, 2])


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("stacked", [False, True])
def test_strided_arrays_are_joined(dim, stacked):
    base = np.arange(90_000, dtype=np.float32).reshape(300, 300)
    arrays = [base.T, base[::-1], np.broadcast_to(base[:, :1], base.shape), base[:, ::-1]]
    numpys = np.stack if stacked else np.concatenate
    joined = copying.stack if stacked else copying.cat
    np.testing.assert_array_equal(joined(arrays, dim), numpys(arrays, dim))
    foreign = base.astype(">f4")
    np.testing.assert_array_equal(joined([foreign, foreign], dim), numpys([base, base], dim))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (7,), (300, 500)])
@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        *[
            (value, "f4")
            for value in (0, -0.0, 1.5, True, 3, float("nan"), float("inf"), np.float32(2))
        ],
        *[(value, "f8") for value in (0.0, 1e300, 7)],
        *[(value, "i8") for value in (0, -5, 2**62, True, 3.0)],
        *[(value, "f2") for value in (0.1, 0)],
        *[(value, "?") for value in (True, False, 2)],
        *[(value, "u1") for value in (0, 200)],
        *[(value, "c8") for value in (0, 1 + 2j)],
    ],
)
def test_new_arrays_full_of_a_number(shape, value, dtype):
    result = pointwise.fill_new(shape, value, np.dtype(dtype))
    expected = np.full(shape, value, dtype)
    np.testing.assert_array_equal(result, expected)
    assert result.dtype == expected.dtype
    if dtype[0] == "f":
        np.testing.assert_array_equal(np.signbit(result), np.signbit(expected))


@pytest.mark.parametrize("length", [1, 7, 8, 9, 31, 1000, 70_001])
def test_halves_of_every_length(length):
    wide = np.random.default_rng(0).standard_normal(length).astype(np.float32)
    wide[::5] = np.nan
    wide[1::7] = 1e6
    wide[2::7] = 1e-7
    with np.errstate(over="ignore"):
        expected = wide.astype(np.float16)
    half = pointwise.cast(wide, np.dtype("f2"))
    np.testing.assert_array_equal(half, expected)
    np.testing.assert_array_equal(pointwise.cast(half, np.dtype("f4")), expected.astype("f4"))
    np.testing.assert_array_equal(pointwise.cast(half[::-2], np.dtype("f4")), expected[::-2])
    doubled = pointwise.Binary("add").call(half, half)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(doubled, expected + expected)
