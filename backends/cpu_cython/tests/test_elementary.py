"""Elementary functions over all of float, against C's own in double, and in every block of their loops."""

import numpy as np
import pytest

pointwise = pytest.importorskip("tensorplug_cpu_cython.pointwise", reason="cpu_cython is not built")
from scipy import special  # noqa: E402

from tensorplug_cpu_cython.pointwise_fused import Fused  # noqa: E402

# name, exact function, units in the last place that are allowed
FUNCTIONS = [
    ("exp2", np.exp2, 2),
    ("log2", np.log2, 2),
    ("log10", np.log10, 2),
    ("sinh", np.sinh, 2),
    ("cosh", np.cosh, 2),
    ("asinh", np.arcsinh, 2),
    ("acosh", np.arccosh, 1.9),
    ("atanh", np.arctanh, 2),
    ("log1p", np.log1p, 1.4),
    ("erfinv", lambda x: np.copysign(special.erfinv(x), x), 1.25),
    ("asin", np.arcsin, 2),
    ("acos", np.arccos, 2),
    ("atan", np.arctan, 2),
    ("tan", np.tan, 2),
    ("erfc", special.erfc, 2),
    ("tanh", np.tanh, 2),
    ("sigmoid", special.expit, 3),
]

_ENDS = [3e38, 88.9, 89.3, 127.9, 128, 126, 149, 151, 1e9, 1e10, 1e20, 9.9, 10.1, 11, 1000, 1e-30]
SPECIAL = np.array(
    [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1,
        -1,
        0.5,
        -0.5,
        1e-40,
        -1e-40,
        *_ENDS,
        *[-x for x in _ENDS],
    ],
    np.float32,
)


def every_kind_of_float():
    generator = np.random.default_rng(0)
    bits = generator.integers(0, 2**32, 200_000, dtype=np.uint32).view(np.float32)
    near = generator.uniform(-12, 12, 200_000).astype(np.float32)
    small = generator.uniform(-1, 1, 100_000).astype(np.float32)
    return np.concatenate([SPECIAL, bits, near, small, 1 + small, 1 - small * np.float32(1e-4)])


@pytest.mark.parametrize(("name", "exact", "ulps"), FUNCTIONS)
def test_is_exact_to_some_units_in_the_last_place(name, exact, ulps):
    x = every_kind_of_float()
    if name == "tan":
        x = x[~(np.abs(x) > 1e6)]
    result = pointwise.Unary(name).call(x)
    with np.errstate(all="ignore"):
        wide = exact(x.astype(np.float64))
        expected = wide.astype(np.float32)
        unit = np.spacing(np.maximum(np.abs(expected), np.float32(1.2e-38))).astype(np.float64)
        errors = np.abs(result.astype(np.float64) - wide) / unit
    finite = np.isfinite(expected) & np.isfinite(result)
    worst = np.argmax(np.where(finite, errors, 0))
    assert errors[worst] <= ulps, (x[worst], result[worst], expected[worst])
    # At the very end of float's range one of the two may be infinite already.
    edge = np.abs(wide) > 3.4028e38
    np.testing.assert_array_equal(result[~finite & ~edge], expected[~finite & ~edge])
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(result)[numbers], np.signbit(expected)[numbers])


def test_logarithms_of_powers_are_whole():
    tens = 10.0 ** np.arange(11, dtype=np.float32)
    np.testing.assert_array_equal(pointwise.Unary("log10").call(tens), np.arange(11))
    twos = np.exp2(np.arange(-140, 128)).astype(np.float32)
    np.testing.assert_array_equal(pointwise.Unary("log2").call(twos), np.arange(-140, 128))
    whole = np.arange(-149, 128, dtype=np.float32)
    powers = np.ldexp(np.float32(1), whole.astype(np.int32))
    np.testing.assert_array_equal(pointwise.Unary("exp2").call(whole), powers)


def test_gelu_of_far_arguments():
    gelu = pointwise.Unary("gelu").call
    x = np.array([-np.inf, -100, -10, 0.0, -0.0, 10, 100, np.inf, np.nan, 1e-30], np.float32)
    expected = np.array([np.nan, 0, 0, 0, 0, 10, 100, np.inf, np.nan, 5e-31], np.float32)
    np.testing.assert_allclose(gelu(x), expected, rtol=1e-6)
    near = np.linspace(-6, 6, 100_001, dtype=np.float32)
    exact = near * 0.5 * special.erfc(-near.astype(np.float64) / np.sqrt(2))
    np.testing.assert_allclose(gelu(near), exact, atol=1e-6)


@pytest.mark.parametrize(("dtype", "bound"), [(np.float32, 1e-5), (np.float64, 1e-13)])
def test_gelu_keeps_its_digits_below_zero(dtype, bound):
    """The value, of either form, and the derivative, where the area of the distribution is small."""
    x = np.linspace(-11, 4, 20_001).astype(dtype)
    wide = x.astype(np.float64)
    area, density = special.ndtr(wide), np.exp(-wide * wide / 2) / np.sqrt(2 * np.pi)
    if dtype is np.float64:  # of float it takes half the time, and is exact beside 1
        np.testing.assert_allclose(pointwise.Unary("gelu").call(x), wide * area, rtol=bound)
    slope = pointwise.Binary("gelu_gradient").call(np.ones_like(x), x)
    scale = np.abs(area) + np.abs(wide * density)
    assert np.max(np.abs(slope - (area + wide * density)) / scale) < bound
    x, wide = x[x > -6], wide[x > -6]
    root = np.sqrt(2 / np.pi)
    logistic = special.expit(2 * root * (wide + 0.044715 * wide**3))
    np.testing.assert_allclose(pointwise.Unary("gelu_tanh").call(x), wide * logistic, rtol=bound)
    inner = 2 * root * (1 + 3 * 0.044715 * wide**2)
    slope = pointwise.Binary("gelu_tanh_backward").call(np.ones_like(x), x)
    expected = (
        logistic + wide * logistic * special.expit(-2 * root * (wide + 0.044715 * wide**3)) * inner
    )
    scale = logistic * (1 + np.abs(wide * inner))
    assert np.max(np.abs(slope - expected) / scale) < bound


# --- remainders ------------------------------------------------------------------------------------


EXACT = {
    "fmod": lambda x, y: np.fmod(x, y),
    "remainder": lambda x, y: np.remainder(x, y),
    "floor_divide": lambda x, y: np.floor_divide(x, y),
}


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("far", [False, True])
def test_remainders_are_exact(name, far):
    generator = np.random.default_rng(0)
    x = np.float32(10) ** generator.uniform(-6, 6, 50_000).astype(np.float32)
    y = x * np.float32(2) ** generator.uniform(-26, 3, 50_000).astype(np.float32)
    x *= generator.choice(np.float32([-1, 1]), x.size)
    y *= generator.choice(np.float32([-1, 1]), x.size)
    x[:1000] = np.round(x[:1000]) * np.abs(y[:1000])  # whole quotients
    if far:  # one in every block
        x[::300] = generator.choice(SPECIAL, x[::300].size)
        y[::350] = generator.choice(SPECIAL, y[::350].size)
    result = pointwise.Binary(name).call(x, y)
    with np.errstate(all="ignore"):
        expected = EXACT[name](x, y)
    np.testing.assert_array_equal(result, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(result)[numbers], np.signbit(expected)[numbers])
    some = np.asarray(np.float32(0.75))
    with np.errstate(all="ignore"):
        expected = EXACT[name](x, some)
    np.testing.assert_array_equal(pointwise.Binary(name).call(x, some), expected)


@pytest.mark.parametrize("name", EXACT)
def test_remainders_of_strided_operands_and_in_place(name):
    generator = np.random.default_rng(0)
    x = generator.uniform(-50, 50, (80, 90)).astype(np.float32)
    y = generator.uniform(0.5, 7, (90, 80)).astype(np.float32)
    expected = EXACT[name](x[:, ::-1], y.T)
    np.testing.assert_array_equal(pointwise.Binary(name).call(x[:, ::-1], y.T), expected)
    plain = EXACT[name](x, y.reshape(80, 90))
    assert pointwise.Binary(name).call(x, y.reshape(80, 90), x) is x
    np.testing.assert_array_equal(x, plain)


# --- powers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("exponent", [2, 3, 0.5, -1, -2, -0.5, 1, 0, 4, -3, 0.25, np.inf, np.nan])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_by_a_number(exponent, dtype):
    generator = np.random.default_rng(0)
    x = np.concatenate([SPECIAL, generator.uniform(-5, 5, 3000).astype(np.float32)]).astype(dtype)
    result = pointwise.Binary("pow").call(x, np.asarray(exponent, dtype))
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.float64), exponent).astype(dtype)
        # Not NumPy's shortcut by the square root, which loses the signs of zero and infinity.
        if abs(exponent) == 0.5:
            expected[x == -np.inf] = np.inf if exponent > 0 else 0.0
            expected[x == 0] = 0.0 if exponent > 0 else np.inf
    tiny = np.finfo(dtype).tiny
    close = np.abs(expected) >= tiny
    close |= ~np.isfinite(expected) | (expected == 0)
    np.testing.assert_allclose(result[close], expected[close], rtol=4 * np.finfo(dtype).eps)
    same = np.isfinite(expected) & close
    np.testing.assert_array_equal(np.signbit(result)[same], np.signbit(expected)[same])
    out = x.copy()
    assert pointwise.Binary("pow").call(out, np.asarray(exponent, dtype), out) is out
    np.testing.assert_array_equal(out, result)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int16, np.int8, np.uint8])
def test_powers_of_integers_wrap_around(dtype):
    info = np.iinfo(dtype)
    x = np.array([0, 1, 2, 3, 7, 11, 100, info.max, info.min, info.max // 2], dtype)
    exponents = np.array([0, 1, 2, 3, 4, 5, 7, 8, 13, 62, 63, 64, 100], dtype)
    power = pointwise.Binary("pow").call
    expected = np.power(x[:, None], exponents)
    np.testing.assert_array_equal(power(x[:, None], exponents), expected)
    for number, row in zip(exponents, expected.T, strict=True):
        np.testing.assert_array_equal(power(x, np.asarray(number)), row)
    if dtype is not np.uint8:
        some = np.array([0, 1, -1, 2, -2, info.min], dtype)
        np.testing.assert_array_equal(power(some, np.asarray(-1, dtype)), [0, 1, -1, 0, 0, 0])
        np.testing.assert_array_equal(power(some, np.asarray(-2, dtype)), [0, 1, 1, 0, 0, 0])
    empty = np.empty(0, dtype)
    assert power(empty, empty).shape == (0,)


# --- strides of one operand ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int8, np.bool_, np.float16])
@pytest.mark.parametrize("length", [0, 1, 5, 1000, 40_000])
def test_reversed_and_repeated_operands(dtype, length):
    array = (np.arange(length) % 100).astype(dtype)
    np.testing.assert_array_equal(pointwise.clone(array[::-1]), array[::-1])
    np.testing.assert_array_equal(pointwise.clone(array[::-2]), array[::-2])
    one = np.broadcast_to(np.asarray(7, dtype), (length,))
    np.testing.assert_array_equal(pointwise.clone(one), one)
    np.testing.assert_array_equal(
        pointwise.cast(array[::-1], np.dtype("f4")), array[::-1].astype(np.float32)
    )


@pytest.mark.parametrize("most", [1, 100, 65536, 2.6e8])
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_of_every_size_are_exact(name, most):
    """Blocks of small, middling and huge angles are reduced in different ways."""
    generator = np.random.default_rng(0)
    x = generator.uniform(-most, most, 300_000).astype(np.float32)
    multiples = np.arange(min(int(most), 40_000)) * (np.pi / 2)  # where a sine or cosine vanishes
    for angles in (x, multiples.astype(np.float32), x[::3], SPECIAL[np.abs(SPECIAL) <= most]):
        result = pointwise.Unary(name).call(angles).astype(np.float64)
        expected = getattr(np, name)(angles.astype(np.float64))
        unit = np.spacing(np.abs(expected.astype(np.float32))).astype(np.float64)
        assert np.max(np.abs(result - expected) / unit) <= 4


def test_arguments_of_the_normal_distribution():
    """From the least float on, and around where one polynomial follows another."""
    generator = np.random.default_rng(0)
    tiny = np.float32(10) ** generator.uniform(-45, 0, 50_000).astype(np.float32)
    around = np.linspace(0, 1, 100_001, dtype=np.float32)
    ends = np.array([0, 1, 0.5, -1e-9, 1.1, np.nan, 1e-45, 1 - 2.0**-24], np.float32)
    p = np.concatenate([tiny, 1 - tiny, around, ends])
    found = Fused("ndtri").call((p,))
    expected = special.ndtri(p.astype(np.float64))
    finite = np.isfinite(expected)
    unit = np.spacing(np.abs(expected[finite].astype(np.float32))).astype(np.float64)
    assert np.all(np.abs(found[finite] - expected[finite]) <= 1.7 * unit)
    np.testing.assert_array_equal(found[~finite], expected[~finite].astype(np.float32))
