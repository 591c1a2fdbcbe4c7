"""Batch normalisation: in rows and channels last, of many sizes, against NumPy in double precision."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

cpu_features = pytest.importorskip(
    "tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built"
)
import tensorplug as tp  # noqa: E402
from tensorplug_cpu_cython import normalization_batch  # noqa: E402

SHAPES = [
    (4, 3),
    (300, 129),
    (2, 5, 7),
    (3, 64, 9, 11),
    (2, 85, 33, 31),
    (1, 1, 300, 400),
    (2, 3, 4, 5, 6),
    (16, 700, 1, 1),
    # Planes that are columns of a row of channels: few, many, of one and several channels.
    (9, 3, 4),
    (70, 1, 5),
    (300, 5, 10),
    (12, 40, 8, 8),
    (8, 300, 7, 7),
]


def numbers(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def channels_last(array):
    order = (0, *range(2, array.ndim), 1)
    back = (0, array.ndim - 1, *range(1, array.ndim - 1))
    return np.ascontiguousarray(array.transpose(order)).transpose(back)


def gaps(array):
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    wide[..., ::2] = array
    return wide[..., ::2]


ORDERS = {"rows": np.ascontiguousarray, "channels_last": channels_last, "gaps": gaps}


def expected_of(x, weight, bias, eps):
    dims, shape = (0, *range(2, x.ndim)), (1, -1, *[1] * (x.ndim - 2))
    x = x.astype(np.float64)
    mean, rstd = x.mean(dims), 1 / np.sqrt(x.var(dims) + eps)
    standard = (x - mean.reshape(shape)) * rstd.reshape(shape)
    return standard * weight.reshape(shape) + bias.reshape(shape), mean, rstd


@pytest.fixture(params=[1, 2, 4], ids=lambda n: f"{n} threads")
def threads(request):
    before = cpu_features.get_num_threads()
    cpu_features.set_num_threads(request.param)
    yield
    cpu_features.set_num_threads(before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.usefixtures("threads")
def test_forward(shape, order, dtype):
    x = ORDERS[order](numbers(*shape, dtype=dtype) * 3 + 50)
    weight, bias = numbers(shape[1], seed=1, dtype=dtype), numbers(shape[1], seed=2, dtype=dtype)
    found = normalization_batch.batch_normalize([x, weight, bias], 1e-3)
    for result, expected in zip(found, expected_of(x, weight, bias, 1e-3), strict=True):
        assert result.dtype == dtype
        assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("turned", ["rows", "channels_last"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.usefixtures("threads")
def test_backward(shape, order, turned):
    x, g = numbers(*shape) + 2, numbers(*shape, seed=1)
    weight, g_mean, g_rstd = (numbers(shape[1], seed=k) for k in (2, 3, 4))
    dims, wide = (0, *range(2, x.ndim)), (1, -1, *[1] * (x.ndim - 2))
    _, mean, rstd = expected_of(x, weight, weight, 1e-2)
    n = x.size / shape[1]
    standard = (x.astype(np.float64) - mean.reshape(wide)) * rstd.reshape(wide)
    sums, products = g.sum(dims, np.float64), (g * standard).sum(dims)
    inner = g - sums.reshape(wide) / n - standard * products.reshape(wide) / n
    g_x = (weight * rstd).reshape(wide) * inner + g_mean.reshape(wide) / n
    g_x -= (g_rstd * rstd**2).reshape(wide) * standard / n
    found = normalization_batch.batch_normalize_backward(
        ORDERS[turned](g), g_mean, g_rstd, ORDERS[order](x), weight,
        mean.astype(np.float32), rstd.astype(np.float32),
    )  # fmt: skip
    for result, expected in zip(found, (g_x, products, sums), strict=True):
        assert_allclose(result, expected, rtol=1e-3, atol=2e-4 * np.sqrt(n / 100 + 1))


def test_results_lie_as_the_images_do():
    x, one = channels_last(numbers(2, 8, 5, 5)), np.ones(8, np.float32)
    y, mean, rstd = normalization_batch.batch_normalize([x, one, one], 1e-5)
    assert y.strides == x.strides
    rows = np.ascontiguousarray(x)
    back = normalization_batch.batch_normalize_backward(rows, one, one, x, one, mean, rstd)
    assert back[0].strides == x.strides


@pytest.mark.parametrize("order", ["rows", "channels_last"])
def test_a_mean_far_from_zero_costs_no_exactness(order):
    x = ORDERS[order](numbers(8, 16, 40, 40) + 5000)
    one = np.ones(16, np.float32)
    y, _, rstd = normalization_batch.batch_normalize([x, one, one], 0.0)
    assert_allclose(rstd, 1 / x.astype(np.float64).std((0, 2, 3)), rtol=1e-4)
    assert_allclose(y, expected_of(x, one, one, 0.0)[0], atol=2e-3)


def test_a_value_that_is_no_number_stays_in_its_channel():
    x = numbers(4, 3, 40, 40)
    x[1, 1, 2, 3] = np.nan
    one = np.ones(3, np.float32)
    for order in (np.ascontiguousarray, channels_last):
        y, mean, rstd = normalization_batch.batch_normalize([order(x), one, one], 1e-5)
        assert np.isnan(y[:, 1]).all()
        assert np.isfinite(y[:, [0, 2]]).all()
        assert np.isnan(mean[1])
        assert np.isnan(rstd[1])


def test_empty_images():
    one = np.ones(3, np.float32)
    y, mean, rstd = normalization_batch.batch_normalize(
        [np.ones((0, 3, 4), np.float32), one, one], 1e-5
    )
    assert y.shape == (0, 3, 4)
    assert mean.shape == rstd.shape == (3,)
    found = normalization_batch.batch_normalize_backward(y, one, one, y, one, one, one)
    assert [array.shape for array in found] == [(0, 3, 4), (3,), (3,)]
    assert not found[1].any()


@pytest.mark.parametrize("weights", ["images", "float32"])
@pytest.mark.parametrize("dtype", [tp.bfloat16, tp.float16])
def test_half_precision_beside_the_kernel_below(dtype, weights):
    for shape in (
        (2, 3, 5, 5),
        (4, 64, 8, 8),
        (3, 17, 7),
        (5, 70),
        (2, 3, 70, 70),
        (1, 2100, 2, 3),
    ):
        given = np.random.default_rng(1).standard_normal(shape) * 2 + 3
        slope = np.arange(given.size).reshape(shape) % 7 - 3.0
        channels = np.arange(shape[1]) / shape[1]
        orders = (tp.contiguous_format, tp.channels_last)[: 2 if len(shape) == 4 else 1]
        for order in orders:
            found = []
            for backend in ("cpu_cython", "cpu_numpy"):
                with tp.prefer(backend):
                    own = dtype if weights == "images" else tp.float32
                    x = tp.from_numpy(given).to(dtype).contiguous(memory_format=order)
                    w, b = (tp.from_numpy(one).to(own) for one in (channels + 0.5, channels))
                    leaves = [one.requires_grad_() for one in (x, w, b)]
                    y = tp.nn.functional.batch_norm(x, None, None, w, b, True)
                    grads = tp.autograd.grad(y, leaves, tp.from_numpy(slope).to(dtype))
                    found.append((y, *grads))
            for ours, theirs in zip(*found, strict=True):
                assert ours.dtype is theirs.dtype
                expected = theirs.detach().double().numpy()
                scale = max(1.0, float(np.abs(expected).max()))
                np.testing.assert_allclose(
                    ours.detach().double().numpy(), expected, 3e-2, 2e-2 * scale
                )


@pytest.mark.parametrize("away", [0, 50, 1000])
@pytest.mark.parametrize("shape", [(300, 5, 3), (2000, 5, 10), (20, 64, 7, 7), (3000, 20)], ids=str)
def test_numbers_far_from_zero(shape, away):
    x = numbers(*shape) * 2 + np.float32(away)
    one, zero = np.ones(shape[1], np.float32), np.zeros(shape[1], np.float32)
    _, mean, rstd = normalization_batch.batch_normalize([x, one, zero], 1e-5)
    _, exact_mean, exact_rstd = expected_of(x, one, zero, 1e-5)
    assert np.abs(mean - exact_mean).max() < 2.0**-24 * max(1, away) * 1.01
    assert np.abs(rstd / exact_rstd - 1).max() < 4 * 2.0**-24


@pytest.mark.parametrize("shape", [(300, 5, 3), (2000, 5, 10), (64, 128, 8, 8)], ids=str)
def test_sums_of_small_planes_are_exact(shape):
    x, g = numbers(*shape), numbers(*shape, seed=1)
    one, zero = np.ones(shape[1], np.float32), np.zeros(shape[1], np.float32)
    _, mean, rstd = normalization_batch.batch_normalize([x, one, zero], 1e-5)
    found = normalization_batch.batch_normalize_backward(g, zero, zero, x, one, mean, rstd)[2]
    exact = g.astype(np.float64).sum((0, *range(2, g.ndim)))
    assert np.all(np.abs(found - exact) <= np.spacing(np.abs(exact).astype(np.float32)))


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("wide", [False, True], ids=["halves", "float32 beside"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shape", [*SHAPES, (40, 2100), (20, 2100, 3)], ids=str)
@pytest.mark.usefixtures("threads")
def test_halves_are_standardised_in_single_and_rounded_once(shape, order, wide, name):
    dtype = getattr(tp, name)
    beside = tp.float32 if wide else dtype
    x = tp.from_numpy(ORDERS[order](numbers(*shape) * 3)).to(dtype)
    weight, bias, mean = (tp.tensor(numbers(shape[1], seed=k)).to(beside) for k in (1, 2, 3))
    variance = (mean * mean + 0.5).to(beside)
    single = [one.float() for one in (x, mean, variance, weight, bias)]
    unit = 2.0**-11 if name == "float16" else 2.0**-8
    close = {"rtol": 1.1 * unit, "atol": 1e-3}
    found = tp.nn.functional.batch_norm(x, mean, variance, weight, bias, eps=1e-3)
    assert found.dtype is dtype
    expected = tp.nn.functional.batch_norm(*single, eps=1e-3)
    assert_allclose(found.float().numpy(), expected.numpy(), **close)
    y, *statistics = tp.native_batch_norm(x, weight, bias, None, None, True, 0.1, 1e-3)
    whole = tp.native_batch_norm(*(single[k] for k in (0, 3, 4)), None, None, True, 0.1, 1e-3)
    assert y.dtype is dtype
    assert_allclose(y.float().numpy(), whole[0].numpy(), **close)
    for one, other in zip(statistics, whole[1:], strict=True):
        assert_allclose(one.float().numpy(), other.numpy(), rtol=2 * unit, atol=1e-7)
    g = tp.tensor(numbers(*shape, seed=4)).to(dtype)
    leaves = [one.detach().requires_grad_() for one in (x, weight, bias)]
    tp.nn.functional.batch_norm(leaves[0], None, None, *leaves[1:], training=True).backward(g)
    single = [one.detach().float().requires_grad_() for one in leaves]
    tp.nn.functional.batch_norm(single[0], None, None, *single[1:], training=True).backward(
        g.float()
    )
    for one, other in zip(leaves, single, strict=True):
        scale = max(1.0, float(other.grad.abs().max()))
        assert_allclose(
            one.grad.float().numpy(), other.grad.numpy(), rtol=4 * unit, atol=8 * unit * scale
        )
