"""Average pooling, to windows or shares: in rows and channels last, against the ops' bodies."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tensorplug as tp
import tensorplug.nn.functional as F
from tensorplug.plugin import dtype_named, kernel_below

cpu_features = pytest.importorskip(
    "tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built"
)
from tensorplug_cpu_cython import pooling_average  # noqa: E402

CASES = [
    ((2, 3, 9), (3,), (2,), (1,), False),
    ((1, 2, 1500), (2,), (1,), (0,), False),
    ((1, 2, 1500), (700,), (3,), (350,), True),
    ((2, 5, 8, 7), (2, 2), (2, 2), (0, 0), True),
    ((2, 300, 7, 9), (3, 3), (2, 2), (1, 1), False),
    ((1, 20, 30, 33), (3, 2), (3, 1), (1, 0), True),
    ((2, 600, 7, 7), (7, 7), (7, 7), (0, 0), False),
    ((2, 3, 5, 6, 7), (2, 3, 2), (1, 2, 3), (1, 1, 0), False),
    ((30, 5, 2, 3, 4), (2, 2, 3), (1, 2, 2), (1, 1, 1), True),
    *[((1, planes, 6, 5, 6), (4, 5, 6), (2, 3, 2), (2, 2, 2), True) for planes in (1, 3, 4)],
]
SHARES = [
    ((2, 3, 9), (4,)),
    ((1, 2, 1500), (2,)),
    ((1, 2, 40), (1300,)),
    ((2, 70, 7, 9), (3, 4)),
    ((2, 3, 5, 6, 7), (2, 7, 3)),
    ((30, 5, 4), (3,)),
    ((9, 8, 6, 7), (1, 1)),
    *[((3, planes, 1, 1), (6, 5)) for planes in (1, 2, 7)],
    ((2, 3, 1, 1, 1), (1, 40, 2)),
    ((2, 3, 1), (1,)),
]


def channels_last(array):
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)


ORDERS = {
    "rows": np.ascontiguousarray,
    "channels_last": channels_last,
    "gaps": lambda array: np.repeat(array, 2, 0)[::2],
}


@pytest.fixture(params=[1, 4], ids=lambda n: f"{n} threads", autouse=True)
def threads(request):
    before = cpu_features.get_num_threads()
    cpu_features.set_num_threads(request.param)
    yield
    cpu_features.set_num_threads(before)


def numbers(shape, dtype, seed):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(dtype)


def below(name, *arguments):
    """Return what the op gives in double precision without these kernels."""
    return kernel_below(name, "cpu", dtype_named("float64"), "cpu_cython")(*arguments)


def check(name, dtype, order, shape, options):
    """Compare the mean, its gradient and their memory's order with the body's."""
    rtol, atol = (5e-3, 2e-3) if dtype == np.float16 else (1e-5, 1e-5)
    x = numbers(shape, dtype, 0)
    found = getattr(pooling_average, name)(ORDERS[order](x), *options)
    assert found.dtype == dtype
    assert_allclose(found, below(name, x.astype(float), *options), rtol=rtol, atol=atol)
    g = numbers(found.shape, dtype, 1)
    after = (shape,) if name == "adaptive_avg_pool" else (shape[2:], *options)
    back = getattr(pooling_average, f"{name}_backward")(ORDERS[order](g), *after)
    assert back.dtype == dtype
    expected = below(f"{name}_backward", g.astype(float), *after)
    assert_allclose(back, expected, rtol=rtol, atol=atol)
    if (
        order == "channels_last" and min(x[0, 0].size, found[0, 0].size) > 1
    ):  # of a single place both orders are right
        assert found.strides == channels_last(found).strides
        assert back.strides == channels_last(back).strides


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_windows(case, order, dtype):
    shape, *options = case
    for count_include_pad, divisor in ((True, None), (False, None), (True, -3)):
        check("avg_pool", dtype, order, shape, (*options, count_include_pad, divisor))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("case", SHARES, ids=str)
def test_shares(case, order, dtype):
    shape, size = case
    check("adaptive_avg_pool", dtype, order, shape, (size,))


def test_empty_images():
    options = ((2,), (2,), (0,), False, True, None)
    assert pooling_average.avg_pool(np.ones((0, 2, 4), np.float32), *options).shape == (0, 2, 2)
    empty = np.ones((0, 2, 2), np.float32)
    assert pooling_average.avg_pool_backward(empty, (4,), *options).shape == (0, 2, 4)
    none = pooling_average.adaptive_avg_pool(np.ones((2, 1, 3), np.float32), (0,))
    assert none.shape == (2, 1, 0)
    assert not pooling_average.adaptive_avg_pool_backward(none, (2, 1, 3)).any()


def test_special_values():
    x = np.array([[[1, np.nan, 2, 3, np.inf, -np.inf, np.inf, 5]]], np.float32)
    found = pooling_average.avg_pool(x, (2,), (2,), (0,), False, True, None)
    assert_allclose(found, [[[np.nan, 2.5, np.nan, np.inf]]])


@pytest.mark.parametrize(
    "function", [lambda x: F.avg_pool2d(x, 2, 1, 1), lambda x: F.adaptive_avg_pool2d(x, (3, 4))]
)
def test_derivatives(function):
    x = tp.randn(2, 2, 5, 6, dtype=tp.float64).requires_grad_()
    assert tp.autograd.gradcheck(function, (x,))
    assert tp.autograd.gradgradcheck(lambda x: function(x) ** 2, (x,))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("shape", "kernel", "stride", "padding", "ceil_mode"), CASES)
def test_integers_are_cut(shape, kernel, stride, padding, ceil_mode, order):
    x = ORDERS[order](np.random.default_rng(0).integers(-(2**40), 2**40, shape))
    for include, divisor in ((False, None), (True, None), (True, 3), (True, -1), (True, -7)):
        options = (kernel, stride, padding, ceil_mode, include, divisor)
        ones = pooling_average.avg_pool(
            np.ones(shape), kernel, stride, padding, ceil_mode, include, 1
        )
        sums = pooling_average.avg_pool(
            x.astype(float), kernel, stride, padding, ceil_mode, True, 1
        )
        by = divisor or (
            ones if not include else 1 / pooling_average.avg_pool(np.ones(shape), *options) * ones
        )
        found = pooling_average.avg_pool(x, *options)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, np.trunc(sums / np.round(by)).astype(np.int64))
