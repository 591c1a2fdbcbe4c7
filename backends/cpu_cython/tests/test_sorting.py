"""Sorting, selection, running extremes, variances and norms, against NumPy in float64."""

import numpy as np
import pytest

cpu_features = pytest.importorskip(
    "tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built"
)
from tensorplug_cpu_cython import cumulative, sorting, statistics  # noqa: E402

# Each algorithm has its lengths: insertion, merging, radix.
LENGTHS = [1, 2, 11, 12, 13, 25, 95, 97, 300, 5000]
TYPES = [np.float32, np.float64, np.int64, np.int32, np.int16, np.int8, np.uint8, np.float16]
SHAPES = [(5,), (40_000,), (3, 7), (600, 70), (70, 600), (4, 5, 6), (20, 60, 50)]

pytestmark = pytest.mark.usefixtures("threads")


def numbers(*shape, dtype=np.float32, seed=0):
    """Return numbers with ties, signed zeros, infinities and NaN where the dtype has them."""
    array = (np.random.default_rng(seed).standard_normal(shape) * 20).round()
    if np.dtype(dtype).kind == "f" and array.size > 4:
        flat = array.reshape(-1)
        flat[::5] *= -0.0
        flat[1::17], flat[2::19], flat[4::23] = np.nan, np.inf, -np.inf
    return array.astype(dtype)


def ranks(array):
    """Return numbers that sort as the elements do, NaN last."""
    return np.unique(array, return_inverse=True)[1].reshape(array.shape)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("descending", [False, True])
def test_sort(length, dtype, descending):
    array = numbers(3, length, 2, dtype=dtype)
    with np.errstate(invalid="ignore"):
        order = ranks(array) * (-1 if descending else 1)
    for dim in range(3):
        expected = np.argsort(order, axis=dim, kind="stable")
        values, found = sorting.sort(array, dim, descending)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(values, np.take_along_axis(array, expected, dim))
        np.testing.assert_array_equal(sorting.argsort(array, dim, descending, None), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int8, np.float64, np.float16])
@pytest.mark.parametrize("length", [1, 11, 97, 5000])
@pytest.mark.parametrize("largest", [False, True])
def test_top(length, dtype, largest):
    array = numbers(3, length, 2, dtype=dtype)
    order = ranks(array) * (-1 if largest else 1)
    for k in {1, 2, length // 5, length // 2, length} - {0}:
        if k > length:
            continue
        expected = np.take(np.argsort(order, axis=1, kind="stable"), range(k), axis=1)
        values, found = sorting.top(array, k, 1, largest)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(values, np.take_along_axis(array, expected, 1))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("length", [1, 2, 3, 5, 15, 16, 17])
@pytest.mark.parametrize("descending", [False, True])
def test_many_short_rows(length, dtype, descending):
    for shape in ((31, length), (32, length), (65, length), (7, length, 19), (300, length)):
        array = numbers(*shape, dtype=dtype)
        order = ranks(array) * (-1 if descending else 1)
        expected = np.argsort(order, axis=1, kind="stable")
        values, found = sorting.sort(array, 1, descending)
        np.testing.assert_array_equal(found, expected)
        best = np.take_along_axis(array, expected, 1)
        np.testing.assert_array_equal(values, best)
        if array.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(values), np.signbit(best))
        np.testing.assert_array_equal(sorting.argsort(array, 1, descending, None), expected)
        for k in {1, (length + 1) // 2, length}:
            values, found = sorting.top(array, k, 1, descending)
            np.testing.assert_array_equal(found, expected[:, :k])
            np.testing.assert_array_equal(values, best[:, :k])


def test_selection_among_rising_and_falling_numbers():
    rising = np.arange(10_000, dtype=np.float32)
    for array in (rising, rising[::-1].copy(), np.zeros_like(rising)):
        expected = np.argsort(-array, kind="stable")[:7]
        np.testing.assert_array_equal(sorting.top(array, 7, 0, True)[1], expected)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int8])
def test_running_extremes(shape, dtype):
    array = numbers(*shape, dtype=dtype)
    for dim in range(len(shape)):
        place = np.arange(shape[dim]).reshape([-1 if d == dim else 1 for d in range(len(shape))])
        for kernel, ufunc in ((cumulative.cummax, np.maximum), (cumulative.cummin, np.minimum)):
            expected = ufunc.accumulate(array, dim)
            values, met = kernel(array, dim)
            np.testing.assert_array_equal(values, expected)
            here = (array == expected) | (array != array)
            np.testing.assert_array_equal(met, np.maximum.accumulate(place * here, dim))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_running_products_and_logarithms(shape, dtype):
    array = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    tolerance = 1e-5 if dtype is np.float32 else 1e-12
    for dim in range(len(shape)):
        near_one = (1 + array / 100).astype(dtype)
        np.testing.assert_allclose(
            cumulative.cumprod(near_one, dim),
            np.cumprod(near_one.astype(np.float64), dim),
            rtol=max(tolerance, 1e-12),
        )
        given = array * 30
        expected = np.logaddexp.accumulate(given.astype(np.float64), dim)
        np.testing.assert_allclose(
            cumulative.logcumsumexp(given, dim), expected, rtol=tolerance, atol=tolerance
        )


@pytest.mark.parametrize("shape", [(9,), (9, 2)])
def test_logarithms_of_infinities(shape):
    column = np.array([-np.inf, -np.inf, -1000, 5, 800, -np.inf, np.inf, 3, np.nan], np.float32)
    array = np.broadcast_to(column.reshape(9, *[1] * (len(shape) - 1)), shape)
    with np.errstate(invalid="ignore"):
        expected = np.logaddexp.accumulate(array.astype(np.float64), 0)
    np.testing.assert_allclose(cumulative.logcumsumexp(array, 0), expected, rtol=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_moments(shape, dtype):
    # Far from zero, where a single pass over the squares would be off.
    array = (np.random.default_rng(0).standard_normal(shape) + 1000).astype(dtype)
    exact = array.astype(np.float64)
    tolerance = 1e-5 if dtype is np.float32 else 1e-12
    for dim in [(d,) for d in range(len(shape))] + [tuple(range(len(shape)))]:
        for keepdim in (False, True):
            found = statistics.reduce(array, statistics.VARIANCE, dim, 1, keepdim)
            expected = exact.var(dim, ddof=1, keepdims=keepdim)
            assert found.shape == expected.shape
            np.testing.assert_allclose(found, expected, rtol=tolerance)
            found = statistics.reduce(array, statistics.DEVIATION, dim, 0, keepdim)
            np.testing.assert_allclose(found, exact.std(dim, keepdims=keepdim), rtol=tolerance)
        centred = array - 1000
        wide = centred.astype(np.float64)
        found = statistics.reduce(centred, statistics.NORM2, dim, 0, False)
        np.testing.assert_allclose(found, np.sqrt((wide**2).sum(dim)), rtol=tolerance)
        found = statistics.reduce(centred, statistics.NORM1, dim, 0, False)
        np.testing.assert_allclose(found, abs(wide).sum(dim), rtol=tolerance)


def test_nothing_is_left_of_one_element():
    with np.errstate(all="ignore"):
        found = statistics.reduce(np.ones((3, 1), np.float32), statistics.VARIANCE, (1,), 1, False)
    assert np.isnan(found).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 2, 3, 16, 17, 18, 40, 300])
def test_cells_of_a_grid(size, dtype):
    from tensorplug_cpu_cython.sorting_search import grid_counts

    rng = np.random.default_rng(size)
    even = np.linspace(-3, 5, size + 1)
    for off in (0, 0.2, 0.49, 0.6, 3):  # of a cell
        edges = np.sort(even + off * 8 / size * rng.uniform(-1, 1, size + 1)).astype(dtype)
        beside = [np.nextafter(edges, dtype(way)) for way in (-9, 9)]
        others = [-np.inf, np.inf, np.nan, -1e30, 1e30]
        points = np.concatenate([edges, *beside, rng.normal(0, 4, 2000), others]).astype(dtype)
        where = np.searchsorted(edges, points, "right") - 1
        where[points == edges[-1]] = size - 1
        expected = np.bincount(where[(where >= 0) & (where < size)], minlength=size)
        found = grid_counts(points[:, None], [edges], None)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["int8", "uint8", "bool"])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(
    "shape", [(130,), (5000,), (7, 300), (300, 7), (3, 200, 5), (256, 1)], ids=str
)
def test_bytes_are_counted_and_equal_ones_keep_their_order(shape, descending, name):
    for few in (False, True):
        array = np.random.default_rng(0).integers(-128, 128, shape)
        array = (array % 3 if few else array).astype(name)
        for dim in range(len(shape)):
            keys = -array.astype(int) if descending else array
            expected = np.argsort(keys, dim, kind="stable")
            values, places = sorting.sort(array, dim, descending)
            np.testing.assert_array_equal(places, expected)
            np.testing.assert_array_equal(values, np.take_along_axis(array, expected, dim))
            assert values.dtype == array.dtype
