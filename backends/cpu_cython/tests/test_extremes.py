"""amax, amin and their places: NaN anywhere, in any vector and behind the last one, at any strides."""

import numpy as np
import pytest

machine = pytest.importorskip("tensorplug_cpu_cython.machine", reason="cpu_cython is not built")
from tensorplug_cpu_cython import reductions  # noqa: E402

KINDS = {"amax": (reductions.MAX, np.max), "amin": (reductions.MIN, np.min)}
WIDTHS = [1, 2, 3, 5, 15, 16, 17, 31, 63, 64, 65, 100, 129, 300]


def reduced(name, array, dim):
    return reductions.Reduction(KINDS[name][0], None).call(array, dim, False)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", WIDTHS)
def test_nan_wins_wherever_it_is(name, dtype, width):
    rows = np.random.default_rng(0).standard_normal((width, width)).astype(dtype)
    np.fill_diagonal(rows, np.nan)  # one in each row and column, at every place
    assert np.isnan(reduced(name, rows, (1,))).all()
    assert np.isnan(reduced(name, rows, (0,))).all()
    assert np.isnan(reduced(name, rows, (0, 1)))
    rows[:, 0] = np.copysign(np.nan, -1)
    assert np.isnan(reduced(name, rows, (1,))).all()


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32, np.uint8])
@pytest.mark.parametrize("width", WIDTHS)
def test_extremes_at_every_place(name, dtype, width):
    rows = np.full((width, width), 5, dtype)
    np.fill_diagonal(rows, 9 if name == "amax" else 1)
    expected = np.full(width, 9 if name == "amax" else 1, dtype)
    for dim in (0, 1):
        np.testing.assert_array_equal(reduced(name, rows, (dim,)), expected)
        if dtype != np.uint8:
            result = reductions.Place(0 if name == "amax" else 1, None).call(rows, dim, False)
            np.testing.assert_array_equal(result, np.arange(width))


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("dims", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_of_strided_arrays_and_infinities(name, dims, threads):
    before = machine.get_num_threads()
    machine.set_num_threads(threads)
    try:
        array = np.random.default_rng(0).standard_normal((40, 70, 90)).astype(np.float32)
        array[3] = np.inf
        array[5, :, 8] = -np.inf
        array[:, 6] = -0.0
        for view in (array, array[::-1, :, ::2], array.transpose(2, 0, 1), array[:, 1:, 3:]):
            expected = KINDS[name][1](view, axis=dims)
            np.testing.assert_array_equal(reduced(name, view, dims), expected)
    finally:
        machine.set_num_threads(before)


@pytest.mark.parametrize("name", KINDS)
def test_a_row_of_infinities(name):
    for value in (np.inf, -np.inf):
        array = np.full((3, 130), value, np.float32)
        np.testing.assert_array_equal(reduced(name, array, (1,)), np.full(3, value))
        np.testing.assert_array_equal(reduced(name, array, (0,)), np.full(130, value))
