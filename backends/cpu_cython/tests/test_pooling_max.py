"""Max pooling: in rows and channels last, of one to three dimensions, against NumPy's kernels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

cpu_features = pytest.importorskip(
    "tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built"
)
import tensorplug as tp  # noqa: E402
from tensorplug_cpu_cython import pooling_max  # noqa: E402
from tensorplug_cpu_numpy.kernels import pooling as reference  # noqa: E402

CASES = [
    ((2, 3, 9), (3,), (2,), (1,), (1,), False),
    ((1, 2, 700), (2,), (1,), (0,), (3,), False),
    ((2, 5, 8, 7), (2, 2), (2, 2), (0, 0), (1, 1), True),
    ((2, 300, 7, 9), (3, 3), (2, 2), (1, 1), (1, 1), False),
    ((1, 20, 30, 33), (3, 2), (3, 1), (1, 0), (2, 3), True),
    ((2, 5, 3, 4), (3, 4), (1, 1), (0, 0), (1, 1), False),  # to images of one place
    ((2, 3, 5, 6, 7), (2, 3, 2), (1, 2, 3), (1, 1, 0), (1, 1, 2), False),
    ((30, 5, 2, 3, 4), (2, 2, 3), (1, 2, 2), (1, 1, 1), (1, 1, 1), True),
]


def channels_last(array):
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)


ORDERS = {
    "rows": np.ascontiguousarray,
    "channels_last": channels_last,
    "gaps": lambda array: np.repeat(array, 2, 0)[::2],
}


@pytest.fixture(params=[1, 2, 4], ids=lambda n: f"{n} threads", autouse=True)
def threads(request):
    before = cpu_features.get_num_threads()
    cpu_features.set_num_threads(request.param)
    yield
    cpu_features.set_num_threads(before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_maxima_and_their_gradient(case, order, dtype):
    shape, *options = case
    # Few different values, so that there are equal maxima.
    x = np.random.default_rng(0).integers(-4, 4, shape).astype(dtype)
    values, places = pooling_max.max_pool(ORDERS[order](x), *options)
    expected, expected_places = reference.max_pool(x, *options)
    assert values.dtype == dtype
    assert_array_equal(values, expected)
    assert_array_equal(places, expected_places)
    g = np.random.default_rng(1).integers(-4, 4, values.shape).astype(dtype)
    found = pooling_max.max_pool_backward(g, places, shape)
    assert_allclose(found, reference.max_pool_backward(g, expected_places, shape))
    if order == "channels_last":
        assert values.strides == channels_last(values).strides
        assert found.strides == channels_last(found).strides


@pytest.mark.parametrize("order", ["rows", "channels_last"])
def test_special_values(order):
    x = np.full((1, 17, 4, 6), -np.inf, np.float32)
    x[0, 1, 0, 1] = x[0, 1, 1, 0] = np.nan
    x[0, 2, 3, 5] = np.inf
    options = ((2, 2), (2, 2), (0, 0), (1, 1), False)
    values, places = pooling_max.max_pool(ORDERS[order](x), *options)
    assert np.isnan(values[0, 1, 0, 0])
    assert places[0, 1, 0, 0] == 6  # the last of them
    assert values[0, 2, 1, 2] == np.inf
    assert values[0, 0, 0, 1] == -np.inf
    assert places[0, 0, 0, 1] == 2  # the first of equal ones


def test_places_outside_are_refused():
    g, places = np.ones((1, 1, 2), np.float32), np.array([[[0, 7]]])
    with pytest.raises(IndexError, match="outside of a plane"):
        pooling_max.max_pool_backward(g, places, (1, 1, 5))


def test_empty_images():
    values, places = pooling_max.max_pool(
        np.ones((0, 2, 4), np.float32), (2,), (2,), (0,), (1,), False
    )
    assert values.shape == places.shape == (0, 2, 2)
    assert pooling_max.max_pool_backward(values, places, (0, 2, 4)).shape == (0, 2, 4)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_maxima_of_whole_numbers(case, order, dtype):
    """Of the dtype's whole range and its ends; some windows lie in the padding alone."""
    shape, *options = case
    info = np.iinfo(dtype)
    x = np.random.default_rng(0).integers(info.min, info.max, shape, dtype, endpoint=True)
    x.flat[::3] = info.min
    x.flat[::7] = info.max
    kernel = tp.explain("max_pool", dtype=getattr(tp, dtype)).kernel
    assert kernel is not None
    assert kernel.plugin == "cpu_cython"
    values, places = kernel.function(ORDERS[order](x), *options)
    expected, expected_places = reference.max_pool(x, *options)
    assert values.dtype == x.dtype
    assert_array_equal(values, expected)
    assert_array_equal(places, expected_places)
