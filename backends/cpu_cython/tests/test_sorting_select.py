"""Selection by rank, and both extremes at once, against sorting and NumPy."""

import itertools
import warnings

import numpy as np
import pytest

cpu_features = pytest.importorskip(
    "tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built"
)
from tensorplug_cpu_cython import reductions, sorting, sorting_select  # noqa: E402

# Around whole blocks of vectors, below and above what is looked at in several goes.
LENGTHS = [1, 2, 31, 32, 33, 64, 65, 127, 128, 129, 257, 1000, 5000]
TYPES = [
    np.float32,
    np.float64,
    np.int64,
    np.int32,
    np.int16,
    np.int8,
    np.uint8,
    np.bool_,
    np.float16,
]
WAYS = ["linear", "lower", "higher", "midpoint", "nearest"]


@pytest.fixture(params=[1, 4], autouse=True)
def threads(request):
    before = cpu_features.get_num_threads()
    cpu_features.set_num_threads(request.param)
    yield request.param
    cpu_features.set_num_threads(before)


def numbers(*shape, dtype=np.float32, ties=True, special=True):
    """Return numbers, maybe with ties, and with signed zeros, infinities and NaN where the dtype has them."""
    array = np.random.default_rng(len(shape)).standard_normal(shape)
    array = (array * 20).round() if ties else array * 1e3
    if special and np.dtype(dtype).kind == "f" and array.size > 4:
        flat = array.reshape(-1)
        flat[::5] *= -0.0
        flat[1::17], flat[2::19], flat[4::23] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        return array.astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("ties", [False, True])
def test_ranks(length, dtype, ties):
    check_ranks(numbers(3, length, 2, dtype=dtype, ties=ties))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("ties", [False, True])
def test_ranks_of_short_rows(dtype, ties):
    for rows, length in itertools.product((31, 32, 64, 65, 200), (1, 2, 5, 16, 23, 24, 25)):
        array = numbers(rows, length, dtype=dtype, ties=ties)
        if array.dtype.kind == "f":
            array[rows // 2] = np.nan
        check_ranks(array)


def check_ranks(array):
    """Compare all ranks, and both medians, along each dimension with what sorting gives."""
    for dim in range(array.ndim):
        values, places = sorting.sort(array, dim, False)
        size = array.shape[dim]
        for k in {1, size // 3 + 1, size // 2 + 1, size}:
            found, at = sorting_select.kth(array, k, dim, True)
            np.testing.assert_array_equal(found, values.take([k - 1], dim))
            np.testing.assert_array_equal(at, places.take([k - 1], dim))
        count = (array == array).sum(dim, keepdims=True)
        lower = np.maximum((count - 1) // 2, 0)
        for ignore_nan in (False, True):
            rank = lower if ignore_nan else np.where(count == size, (size - 1) // 2, count)
            found, at = sorting_select.median(array, dim, True, ignore_nan)
            np.testing.assert_array_equal(at, np.take_along_axis(places, rank, dim))
            np.testing.assert_array_equal(found, np.take_along_axis(values, rank, dim))
            assert (
                sorting_select.median(array, dim, False, ignore_nan)[1].shape
                == at.squeeze(dim).shape
            )


def test_median_of_all():
    array = numbers(30, 40, special=False)
    assert sorting_select.median_of_all(array.T, False) == np.sort(array, None)[599]
    array[3, 5] = np.nan
    assert np.isnan(sorting_select.median_of_all(array, False))
    assert sorting_select.median_of_all(array, True) == np.sort(array, None)[599]
    assert np.isnan(sorting_select.median_of_all(np.full(5, np.nan), True))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(4, 5, n) for n in LENGTHS] + [(7, 11, n) for n in (1, 5, 24)])
@pytest.mark.parametrize("levels", [1, 20])
def test_quantiles(shape, dtype, levels):
    array = numbers(*shape, dtype=dtype, special=False)
    array[0, :2, 0] = np.nan
    array[1, 1] = np.nan
    q = np.linspace(0, 1, levels).astype(dtype) if levels > 1 else np.asarray([0.375], dtype)
    for way in WAYS:
        for function, ignore_nan in ((np.quantile, False), (np.nanquantile, True)):
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # of rows without a number
                expected = function(array.astype(np.float64), q.astype(np.float64), -1, method=way)
            found = np.moveaxis(sorting_select.quantiles(array, q, ignore_nan, way), -1, 0)
            if dtype is np.float64:
                np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
            elif way == "linear":  # others depend on how the place is rounded
                np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32, np.uint8])
@pytest.mark.parametrize("length", LENGTHS)
def test_both_extremes(length, dtype):
    both = reductions.Extremes(
        reductions.Reduction(reductions.MIN), reductions.Reduction(reductions.MAX)
    )
    array = numbers(6, length, dtype=dtype, special=False)
    for dim in ((0,), (1,), (0, 1)):
        for keepdim in (False, True):
            low, high = both.call(array, dim, keepdim)
            np.testing.assert_array_equal(low, array.min(dim, keepdims=keepdim))
            np.testing.assert_array_equal(high, array.max(dim, keepdims=keepdim))
    if np.dtype(dtype).kind == "f":
        array[2, length // 2] = np.nan
        low, high = both.call(array, (1,), False)
        np.testing.assert_array_equal(np.isnan(low), np.arange(6) == 2)
        np.testing.assert_array_equal(np.isnan(high), np.arange(6) == 2)


@pytest.mark.parametrize("length", [1, 63, 300, 70_000, 300_000])
def test_truth_values_are_counted(length):
    array = np.random.default_rng(0).random((2, length)) < 0.9
    count = reductions.Reduction(reductions.FILLED, of_truth=True)
    for dim in (0, 1, None):
        np.testing.assert_array_equal(count.call(array, dim, False), array.sum(dim))
    assert count.call(np.ones(length, bool), None, False) == length
    for dtype in (np.float32, np.float64, np.int64, np.int8):
        numbers = array.astype(dtype) * 3
        for dim in (0, 1, None):
            np.testing.assert_array_equal(count.call(numbers, dim, False), array.sum(dim))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("length", [1, 7, 100, 1003])
def test_products(length, dtype):
    array = (1 + np.random.default_rng(0).standard_normal((3, length)) * 0.1).astype(dtype)
    product = reductions.Reduction(reductions.PROD)
    for dim in (0, 1, None):
        expected = array.astype(np.float64).prod(dim).astype(dtype)
        np.testing.assert_allclose(
            product.call(array, dim, False), expected, rtol=1e-12 if dtype is np.float64 else 1e-7
        )


def test_mean_of_numbers():
    array = numbers(7, 90, special=False)
    array[::2, ::3] = np.nan
    array[3] = np.nan
    mean = reductions.NanMean(None)
    for dim in ((0,), (0, 1)):
        np.testing.assert_allclose(mean.call(array, dim, False), np.nanmean(array, dim), rtol=1e-5)
    assert np.isnan(mean.call(array, (1,), True)[3, 0])
    assert mean.call(array, (1,), True).shape == (7, 1)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int16, np.int8, np.uint8])
@pytest.mark.parametrize("length", [0, 3, 1000])
def test_occurrences(length, dtype):
    array = np.random.default_rng(0).integers(0, 30, 2 * length).astype(dtype)[::2]
    found = sorting_select.occurrences(array, 40)
    np.testing.assert_array_equal(found, np.bincount(array, minlength=40))
    with pytest.raises(IndexError, match="from 0 to 19"):
        sorting_select.occurrences(np.asarray([3, 20], dtype), 20)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("low", "high"), [(-2, 2), (0, 1e-3), (5, 5.000001), (-1e38, 3e38)])
@pytest.mark.parametrize("bins", [1, 7, 5000])
def test_even_counts(bins, low, high, dtype):
    edges = np.linspace(low, high, bins + 1).astype(dtype)
    rng = np.random.default_rng(0)
    array = rng.uniform(low, high, 4000).astype(dtype)
    array[:8] = [np.nan, np.inf, -np.inf, *np.nextafter(edges[[0, -1, 0, -1]], dtype(0)), 0]
    array[8:1000] = rng.choice(edges, 992)
    array = array[::2]
    place = np.searchsorted(edges, array, "right") - 1
    place[array == edges[-1]] = bins - 1
    inside = (place >= 0) & (place < bins)
    found = sorting_select.even_counts(array, edges)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, np.bincount(place[inside], minlength=bins))


def test_even_counts_of_an_endless_width():
    edges = np.array([-1.5e308, 0, 1.5e308])
    found = sorting_select.even_counts(np.array([-1.0, 1e308, 0.0, -1.5e308, np.inf]), edges)
    np.testing.assert_array_equal(found, [2, 2])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32, np.int16, np.uint8])
def test_modes(dtype):
    array = np.abs(numbers(5, 60, 4, dtype=np.float32, special=False) / 8).round().astype(dtype)
    for dim in range(3):
        values, places = sorting_select.mode(array, dim, False)
        for at in np.ndindex(values.shape):
            row = np.moveaxis(array, dim, -1)[at]
            found, counts = np.unique(row, return_counts=True)
            assert values[at] == found[counts.argmax()]
            assert places[at] == np.flatnonzero(row == values[at])[-1]
        assert sorting_select.mode(array, dim, True)[0].shape == np.expand_dims(values, dim).shape


def test_modes_of_nan_and_zeros():
    rows = np.array([[np.nan, np.nan, 1, 2, 2], [0.0, -0.0, np.nan, 1, 1]])
    values, places = sorting_select.mode(rows, 1, False)
    np.testing.assert_array_equal(values, [2, 0])
    np.testing.assert_array_equal(places, [4, 1])
    values, places = sorting_select.mode(np.full(3, np.nan), 0, False)
    assert np.isnan(values)
    assert places == 0
    assert sorting_select.mode(np.empty((0, 3)), 1, False)[0].shape == (0,)


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.int64, np.int32, np.int16, np.int8, np.uint8]
)
@pytest.mark.parametrize("tests", [1, 5, 32, 33, 200])
@pytest.mark.parametrize("length", [0, 3, 5000])
def test_membership(length, tests, dtype):
    array = numbers(length, 2, dtype=np.float32, special=False).clip(0, 50).astype(dtype)[:, 0]
    given = numbers(2 * tests, dtype=np.float32, special=False).clip(0, 50).astype(dtype)[::2]
    if dtype in (np.float32, np.float64):
        array[::3], given[-1] = np.nan, np.nan
    np.testing.assert_array_equal(
        sorting_select.among(array, given), (array[:, None] == given).any(1)
    )
    assert np.asarray(sorting_select.among(np.asarray(given[0]), given)).shape == ()


@pytest.mark.parametrize("dtype", [*TYPES, np.complex64], ids=lambda dtype: dtype.__name__)
def test_places_that_are_not_zero(dtype):
    rng = np.random.default_rng(0)
    shapes = [(0,), (1,), (9,), (0, 3), (3, 0), (2, 9), (3, 1, 8), (2, 3, 4, 5), (5, 17), (3, 4000)]
    for shape, share in itertools.product(shapes, (0, 0.02, 0.4, 1)):
        whole = (rng.random(shape) < share).astype(dtype)
        if dtype not in (np.bool_, np.uint8):
            whole = -whole
        for array in (whole, whole.T, whole[::-1], whole[..., ::2]):
            places = np.argwhere(array)
            np.testing.assert_array_equal(sorting_select.nonzero(array), places)
            for size in (0, 1, 7, len(places), len(places) + 3):
                expected = np.full((size, array.ndim), -5)
                expected[: len(places)] = places[:size]
                np.testing.assert_array_equal(
                    sorting_select.nonzero_static(array, size, -5), expected
                )


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int64", "float16", "float32", "float64", "uint16", "complex64"]
)
def test_places_of_a_number(dtype: str) -> None:
    """There is one place without coordinates, or none."""
    for value in (0, 1):
        array = np.array(value, dtype)
        assert sorting_select.nonzero(array).shape == (value, 0)
        assert sorting_select.nonzero_static(array, 3, -1).shape == (3, 0)
