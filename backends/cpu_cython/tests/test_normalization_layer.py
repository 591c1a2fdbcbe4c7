"""Normalisation of rows, channels and vectors: of many sizes, against NumPy in double precision."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

cpu_features = pytest.importorskip(
    "tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built"
)
from tensorplug_cpu_cython import normalization_layer  # noqa: E402

DTYPES = [np.float32, np.float64]
# Shape, length of a row, number of weights, for how many elements each counts.
ROWS = [
    ((7, 1), 1, 1, 1),
    ((5, 31), 31, 31, 1),
    ((1000, 500), 500, 500, 1),
    ((3, 70_001), 70_001, 70_001, 1),
    ((600, 12, 64), 4 * 64, 12, 64),
    ((40, 6, 7, 9), 63, 6, 63),
    ((300, 24), 6, 24, 1),
]


def numbers(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def gaps(array):
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    wide[..., ::2] = array
    return wide[..., ::2]


def channels_last(array):
    order = (0, *range(2, array.ndim), 1)
    back = (0, array.ndim - 1, *range(1, array.ndim - 1))
    return np.ascontiguousarray(array.transpose(order)).transpose(back)


@pytest.fixture(params=[1, 3], ids=lambda n: f"{n} threads")
def threads(request):
    before = cpu_features.get_num_threads()
    cpu_features.set_num_threads(request.param)
    yield
    cpu_features.set_num_threads(before)


def near(found, expected, dtype, atol=1e-5):
    assert found.dtype == dtype
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    exact = dtype == np.float64
    assert_allclose(
        found, expected, rtol=1e-12 if exact else 1e-4, atol=scale * (1e-12 if exact else atol)
    )


def standard(x, length, eps, centred):
    x = x.astype(np.float64).reshape(-1, length)
    x = x - x.mean(1, keepdims=True) if centred else x
    rstd = 1 / np.sqrt((x * x).mean(1, keepdims=True) + eps)
    return x * rstd, rstd


def gradient(h, x, length, eps, centred):
    y, rstd = standard(x, length, eps, centred)
    h = h.astype(np.float64).reshape(-1, length)
    result = h - y * (h * y).mean(1, keepdims=True)
    result = result - h.mean(1, keepdims=True) if centred else result
    return (result * rstd).reshape(x.shape)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize(("shape", "length", "weights", "repeat"), ROWS)
@pytest.mark.usefixtures("threads")
def test_rows(shape, length, weights, repeat, centred, dtype):
    x, g = numbers(*shape, dtype=dtype) + 3, numbers(*shape, seed=1, dtype=dtype)
    weight, bias = numbers(weights, seed=2, dtype=dtype), numbers(weights, seed=3, dtype=dtype)
    plain = standard(x, length, 1e-3, centred)[0].reshape(shape)
    near(normalization_layer.row_norm(gaps(x), length, 1e-3, centred), plain, dtype)
    near(
        normalization_layer.row_norm_backward(gaps(g), x, length, 1e-3, centred),
        gradient(g, x, length, 1e-3, centred),
        dtype,
    )
    w, b = (np.resize(np.repeat(v.astype(np.float64), repeat), shape) for v in (weight, bias))
    options = (length, repeat, 1e-3, centred)
    near(normalization_layer.affine_row_norm([x, weight, bias], *options), plain * w + b, dtype)
    near(normalization_layer.affine_row_norm([x, weight], *options), plain * w, dtype)
    found = normalization_layer.affine_row_norm_backward(g, gaps(x), weight, *options)
    near(found[0], gradient(g * w, x, length, 1e-3, centred), dtype)
    for part, terms in ((found[1], g * plain), (found[2], g)):
        expected = terms.astype(np.float64).reshape(-1, weights, repeat).sum((0, 2))
        near(part, expected, dtype, 1e-4)


def test_sums_do_not_depend_on_the_number_of_threads():
    x, g, weight = numbers(4000, 300), numbers(4000, 300, seed=1), numbers(300, seed=2)
    before = cpu_features.get_num_threads()
    results = []
    for count in (1, 2, 3):
        cpu_features.set_num_threads(count)
        results.append(
            normalization_layer.affine_row_norm_backward(g, x, weight, 300, 1, 1e-5, True)
        )
    cpu_features.set_num_threads(before)
    for other in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_weights_that_do_not_fit_are_refused():
    with pytest.raises(RuntimeError, match="do not fit runs of 6 elements"):
        normalization_layer.affine_row_norm([numbers(4, 6), numbers(4)], 6, 1, 1e-5, True)
    with pytest.raises(RuntimeError, match="do not fit"):
        normalization_layer.affine_row_norm(
            [numbers(4, 6), numbers(6), numbers(5)], 6, 1, 1e-5, True
        )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", [np.ascontiguousarray, channels_last, gaps])
@pytest.mark.parametrize("shape", [(4, 3), (2, 5, 7), (3, 64, 33, 31), (300, 70)], ids=str)
@pytest.mark.usefixtures("threads")
def test_channels(shape, order, dtype):
    x, g = order(numbers(*shape, dtype=dtype)), numbers(*shape, seed=1, dtype=dtype)
    mean, weight, bias = (numbers(shape[1], seed=i, dtype=dtype) for i in (2, 3, 4))
    variance = np.abs(numbers(shape[1], seed=5, dtype=dtype))
    along, dims = (1, -1, *[1] * (len(shape) - 2)), (0, *range(2, len(shape)))
    rstd = 1 / np.sqrt(variance.astype(np.float64) + 1e-3)
    plain = (x - mean.reshape(along).astype(np.float64)) * rstd.reshape(along)
    near(normalization_layer.channel_norm([x, mean, variance], 1e-3), plain, dtype)
    found = normalization_layer.channel_norm([x, mean, variance, weight, bias], 1e-3)
    near(found, plain * weight.reshape(along) + bias.reshape(along), dtype)
    if order is channels_last and len(shape) > 2:
        assert found.strides == x.strides
    found = normalization_layer.channel_norm_backward(g, x, mean, variance, weight, 1e-3)
    near(found[0], g * (rstd * weight).reshape(along), dtype)
    near(found[1], (g * plain).sum(dims), dtype, 1e-4)
    near(found[2], g.astype(np.float64).sum(dims), dtype, 1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("shape", [(2, 3, 4), (40, 200, 300), (5000, 1, 33)], ids=str)
@pytest.mark.usefixtures("threads")
def test_unit_vectors(shape, dim, dtype):
    x, g = numbers(*shape, dtype=dtype), numbers(*shape, seed=1, dtype=dtype)
    x[0] = 0
    length = np.sqrt((x.astype(np.float64) ** 2).sum(dim, keepdims=True))
    above, length = length >= 1.0, np.maximum(length, 1.0)
    y = x / length
    near(normalization_layer.unit_vectors(gaps(x), dim, 1.0), y, dtype)
    expected = (g - y * (g * y).sum(dim, keepdims=True) * above) / length
    near(normalization_layer.unit_vectors_gradient(g, x, dim, 1.0), expected, dtype)


def test_nan_stays_in_its_row():
    x = numbers(3, 40)
    x[1, 7] = np.nan
    for result in (
        normalization_layer.row_norm(x, 40, 1e-5, True),
        normalization_layer.unit_vectors(x, 1, 1e-12),
    ):
        assert np.isnan(result[1]).all()
        assert np.isfinite(result[[0, 2]]).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", [np.ascontiguousarray, gaps])
def test_running_statistics(order, dtype):
    mean, variance, new = (np.abs(numbers(7, seed=i, dtype=dtype)) + 1 for i in range(3))
    running_mean, running_var = order(mean.copy()), order(variance.copy())
    rstd = 1 / np.sqrt(new + 1e-3)
    normalization_layer.update_statistics(
        running_mean, running_var, mean * 3, rstd.astype(dtype), 0.1, 1e-3, 1.5
    )
    near(running_mean, mean * 1.2, dtype)
    near(running_var, variance * 0.9 + new * 0.15, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_every_length(dtype):
    """Whole lanes, then fours, then single elements."""
    generator = np.random.default_rng(3)
    for length in range(1, 140):
        x, g = (generator.standard_normal((5, length)).astype(dtype) + 1 for _ in range(2))
        weight, bias = (generator.standard_normal(length).astype(dtype) for _ in range(2))
        exact = x.astype("f8")
        deviation = np.sqrt(exact.var(1, keepdims=True) + 1e-5)
        unit = (exact - exact.mean(1, keepdims=True)) / deviation
        found = normalization_layer.affine_row_norm([x, weight, bias], length, 1, 1e-5, True)
        assert_allclose(found, unit * weight + bias, rtol=1e-4, atol=1e-4)
        g_x, g_weight, g_bias = normalization_layer.affine_row_norm_backward(
            g, x, weight, length, 1, 1e-5, True
        )
        h = g.astype("f8") * weight
        expected = h - h.mean(1, keepdims=True) - unit * (h * unit).mean(1, keepdims=True)
        assert_allclose(g_x * deviation, expected, rtol=1e-3, atol=1e-4)
        assert_allclose(g_weight, (g * unit).sum(0), rtol=1e-3, atol=1e-4)
        assert_allclose(g_bias, g.sum(0, dtype="f8"), rtol=1e-4, atol=1e-5)
