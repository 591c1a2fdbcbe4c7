"""What the conformance suite's small samples leave out: threads, long runs, odd strides."""

import numpy as np
import pytest

cpu_features = pytest.importorskip(
    "tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built"
)
from tensorplug_cpu_cython import cumulative, optimizers, pointwise, random, reductions, softmax  # noqa: E402

LENGTHS = [0, 1, 7, 31, 33, 4095, 8193, 100_003]

pytestmark = pytest.mark.usefixtures("threads")


def numbers(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sin", "cos", "expm1", "log1p", "sqrt"])
def test_functions(name, dtype, length):
    array = np.abs(numbers(length, dtype=dtype)) * 3
    result = pointwise.Unary(name).call(array)
    np.testing.assert_allclose(
        result, getattr(np, name)(array), rtol=8 * np.finfo(dtype).eps, atol=1e-7
    )


@pytest.mark.parametrize("name", ["exp", "expm1", "log", "log1p", "tanh", "sin", "sqrt"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_special_values(name, dtype):
    with np.errstate(all="ignore"):
        special = np.array(
            [0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 1e-310, 1e-40, 1e38, -1e38, 89, -104, 1e8],
            dtype,
        )
        expected = getattr(np, name)(special)
    result = pointwise.Unary(name).call(special)
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=0 if name != "sin" else 1e-6)
    same = np.isfinite(expected)
    np.testing.assert_array_equal(np.signbit(result)[same], np.signbit(expected)[same])


def test_angles():
    edge = np.array([0.0, -0.0, 1, -1, 3, -2, np.inf, -np.inf, np.nan, 1e-40], np.float32)
    y, x = np.meshgrid(edge, edge)
    y = np.concatenate([y.reshape(-1), numbers(100_000)])
    x = np.concatenate([x.reshape(-1), numbers(100_000, seed=1)])
    result = pointwise.Binary("atan2").call(y, x)
    expected = np.arctan2(y.astype(np.float64), x.astype(np.float64))
    np.testing.assert_allclose(result, expected, rtol=5e-7, atol=1e-44)
    there = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(result)[there], np.signbit(expected)[there])


LAYOUTS = [
    lambda a: a,
    lambda a: a.transpose(2, 0, 1),
    lambda a: a.transpose(1, 2, 0),
    lambda a: a[::2, :, ::3],
    lambda a: a[::-1],
    lambda a: a[:, :1],
    lambda a: np.broadcast_to(a[:, :1], a.shape),
]


@pytest.mark.parametrize("other", range(len(LAYOUTS)))
@pytest.mark.parametrize("layout", range(len(LAYOUTS)))
def test_strides_and_broadcasting(layout, other):
    a = LAYOUTS[layout](numbers(24, 36, 30))
    b = LAYOUTS[other](numbers(24, 36, 30, seed=1))
    try:
        expected = np.subtract(a, b)
    except ValueError:
        with pytest.raises(ValueError, match="broadcast"):
            pointwise.Binary("sub").call(a, b)
        return
    result = pointwise.Binary("sub").call(a, b)
    np.testing.assert_array_equal(result, expected)
    assert [abs(s) for s in result.strides] == [abs(s) for s in expected.strides]
    out = np.full(expected.shape[::-1], np.nan, np.float32).T
    assert pointwise.Binary("sub").call(a, b, out) is out
    np.testing.assert_array_equal(out, expected)


def test_an_output_that_overlaps_an_input():
    array = np.arange(200_000, dtype=np.float32)
    expected = array[1:] + array[:-1]
    pointwise.Binary("add").call(array[1:], array[:-1], array[1:])
    np.testing.assert_array_equal(array[1:], expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_round_to_nearest(dtype):
    native = next(d for d in map(np.dtype, _halves()) if d.name == dtype)
    array = np.concatenate([numbers(70_000) * 10.0**k for k in range(-9, 6)]).astype(np.float32)
    with np.errstate(all="ignore"):
        expected = array.astype(native)
    result = pointwise.cast(array, native)
    np.testing.assert_array_equal(result.view(np.uint16), expected.view(np.uint16))
    np.testing.assert_array_equal(
        pointwise.cast(result, np.dtype("f4")), expected.astype(np.float32)
    )


def _halves():
    import ml_dtypes

    return np.float16, ml_dtypes.bfloat16


DIMS = [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2), ()]
SHAPES = [
    (3, 5, 7),
    (1, 1, 200_001),
    (200_001, 1, 3),
    (17, 300, 41),
    (2, 3, 50_000),
    (50_000, 3, 2),
]


@pytest.mark.parametrize("layout", [0, 1, 3, 6])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dim", DIMS, ids=str)
def test_reductions(dim, shape, layout):
    array = LAYOUTS[layout](numbers(*shape))
    for kind, function in (
        (reductions.SUM, np.sum), (reductions.MAX, np.max), (reductions.MIN, np.min),
    ):  # fmt: skip
        result = reductions.Reduction(kind, None).call(array, dim, True)
        expected = function(array.astype(np.float64), axis=dim, keepdims=True)
        # What rounding costs goes with the sum of magnitudes: the terms may cancel.
        atol = max(3e-4, 2e-8 * np.abs(array).sum(dim, np.float64).max())
        np.testing.assert_allclose(result, expected, rtol=1e-6, atol=atol)
    mean = reductions.Reduction(reductions.SUM, None, True).call(array, dim, False)
    np.testing.assert_allclose(mean, array.mean(dim, np.float64), rtol=1e-5, atol=1e-6)


def test_nan_is_an_extreme():
    array = numbers(300, 700)
    array[17, 600] = np.nan
    assert np.isnan(reductions.Reduction(reductions.MAX, None).call(array, (0, 1), False))
    assert reductions.ArgExtreme(0, None).call(array, 1, False)[17] == 600
    assert reductions.ArgExtreme(1, None).call(array, 0, False)[600] == 17


@pytest.mark.parametrize("dim", [None, 0, 1, 2])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_places(dim, shape):
    array = np.round(numbers(*shape) * 4)  # with ties
    for kind, function in enumerate((np.argmax, np.argmin)):
        result = reductions.ArgExtreme(kind, None).call(array, dim, False)
        np.testing.assert_array_equal(result, function(array, axis=dim))


def _softmax(a, dim):
    powers = np.exp(a - a.max(dim, keepdims=True))
    return powers / powers.sum(dim, keepdims=True)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_softmaxes(dim, shape):
    array, g = numbers(*shape), numbers(*shape, seed=1)
    wide, wide_g = array.astype(np.float64), g.astype(np.float64)
    y = _softmax(wide, dim)
    np.testing.assert_allclose(softmax.softmax(array, dim), y, rtol=2e-5, atol=1e-7)
    np.testing.assert_allclose(softmax.log_softmax(array, dim), np.log(y), rtol=2e-5, atol=2e-5)
    expected = y * (wide_g - (wide_g * y).sum(dim, keepdims=True))
    np.testing.assert_allclose(
        softmax.softmax_gradient(g, y.astype(np.float32), dim), expected, rtol=1e-3, atol=1e-5
    )
    expected = wide_g - y * wide_g.sum(dim, keepdims=True)
    np.testing.assert_allclose(
        softmax.log_softmax_gradient(g, np.log(y).astype(np.float32), dim),
        expected,
        rtol=1e-3,
        atol=2e-4,
    )


def test_a_step_of_adam_over_arrays_of_any_order():
    p, g, a, s = (numbers(300, 400, seed=k) for k in range(4))
    s = np.abs(s)
    expected_a = a + 0.1 * (g - a)
    expected_s = 0.99 * s + 0.01 * g * g
    root = np.sqrt(1 - 0.99**3)
    expected = p - 0.01 / (1 - 0.9**3) * expected_a / (np.sqrt(expected_s) / root + 1e-8)
    turned = np.asfortranarray(p)
    optimizers.adam_step(
        [turned], [g], [a], [s], [], [3.0], 0.01, 0.9, 0.99, 0.0, 1e-8, False, False, False
    )
    np.testing.assert_allclose(turned, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(a, expected_a, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(s, expected_s, rtol=1e-5, atol=1e-6)


def test_philox_is_that_of_the_shared_kernels():
    from tensorplug.plugin import ALL_DTYPES
    from tensorplug.plugin.array_kernels import ArrayNamespace, all_kernels

    natives = {
        d: np.dtype(d.name) for d in ALL_DTYPES if d.name in ("int64", "uint64", "float32", "uint8")
    }
    table = all_kernels(ArrayNamespace(np, "cpu", natives))
    reference = next(k.function for k in table if k.op == "philox_bits")
    for shape in ((0,), (1,), (7,), (63, 65), (300_001,)):
        for seed, offset in ((0, 0), (2**63 + 12345, 77), (3, (5 << 64) + 2**64 - 9)):
            np.testing.assert_array_equal(
                random.philox_bits(shape, seed, offset), reference(shape, seed, offset)
            )


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_cumulative_sums(dim, shape):
    array = numbers(*shape)
    expected = np.cumsum(array, dim, np.float64)
    np.testing.assert_allclose(cumulative.cumsum(array, dim), expected, rtol=1e-5, atol=1e-3)
