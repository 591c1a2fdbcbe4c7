"""Elementary and special functions against 80-bit ones, or SciPy's of double, over all of their range."""

import math

import numpy as np
import pytest

pointwise = pytest.importorskip("tensorplug_cpu_cython.pointwise", reason="cpu_cython is not built")
from scipy import special  # noqa: E402

from tensorplug_cpu_cython import cpu_features  # noqa: E402
from tensorplug_cpu_cython.pointwise_fused import Fused  # noqa: E402

LONG = pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 63, reason="long double is no longer than double here"
)

# name, exact function, units in the last place that are allowed
FUNCTIONS = [
    ("exp2", np.exp2, 1.5),
    ("log2", np.log2, 1.5),
    ("log10", np.log10, 1.5),
    ("log", np.log, 1.5),
    ("log1p", np.log1p, 1.3),
    ("tanh", np.tanh, 1.5),
    ("sinh", np.sinh, 2),
    ("cosh", np.cosh, 2),
    ("atanh", np.arctanh, 4),
    ("asin", np.arcsin, 3),
    ("acos", np.arccos, 3),
    ("atan", np.arctan, 3),
    ("sin", np.sin, 2),
    ("cos", np.cos, 2),
    ("tan", np.tan, 3),
]
_EXPONENTS = [709.9, 710.4, 711, 745.2, 1023.9, 1024, 1074, 1076]
_NEAR_ONE = [1 - 2**-53, 1 + 2**-52, 0.41421356237309503, 0.5]
_ENDS = [0.0, 5e-324, 1e-310, 2.3e-308, 1e-30, 1e300, 1.7e308, np.inf, np.nan]
SPECIAL = np.array([1.0, *_EXPONENTS, *_NEAR_ONE, *_ENDS])


def every_kind_of_double():
    generator = np.random.default_rng(0)
    bits = generator.integers(0, 2**64, 50_000, dtype=np.uint64).view(np.float64)
    near = generator.uniform(-30, 30, 100_000)
    small = generator.uniform(-1, 1, 100_000)
    large = generator.uniform(-760, 760, 50_000)
    tiny = np.float64(10) ** generator.uniform(-320, 0, 10_000)
    quarters = np.round(generator.uniform(1, 1e6, 10_000)) * (np.pi / 2)
    parts = [SPECIAL, -SPECIAL, bits, near, small, large, tiny, -tiny, 1 + tiny, 1 - tiny, quarters]
    return np.concatenate(parts)


def check(result, expected, ulps):
    """Compare with longer numbers, or with doubles, in units in the last place."""
    with np.errstate(all="ignore"):
        rounded = expected.astype(result.dtype)
        least = np.finfo(result.dtype).tiny
        unit = np.spacing(np.maximum(np.abs(rounded), least)).astype(expected.dtype)
        errors = np.abs(result.astype(expected.dtype) - expected) / unit
    finite = np.isfinite(rounded) & np.isfinite(result)
    assert np.max(errors[finite]) <= ulps
    edge = np.abs(expected) > np.finfo(result.dtype).max * (1 - 1e-7)  # or infinite already
    np.testing.assert_array_equal(result[~finite & ~edge], rounded[~finite & ~edge])
    numbers = ~np.isnan(rounded) & (rounded != 0)
    np.testing.assert_array_equal(np.signbit(result)[numbers], np.signbit(rounded)[numbers])


@LONG
@pytest.mark.parametrize(("name", "exact", "ulps"), FUNCTIONS)
def test_doubles_are_exact_to_some_units_in_the_last_place(name, exact, ulps):
    x = every_kind_of_double()
    if name in ("sin", "cos", "tan"):
        x = x[~(np.abs(x) > 1e15)]  # there 80 bits are not exact themselves
    with np.errstate(all="ignore"):
        expected = exact(x.astype(np.longdouble))
    check(pointwise.Unary(name).call(x), expected, ulps)
    check(pointwise.Unary(name).call(x[::-3]), expected[::-3], ulps)


@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_error_functions(name):
    x = every_kind_of_double()
    exact = getattr(math, name)  # far out SciPy's error grows
    expected = np.array([exact(value) for value in x])
    check(pointwise.Unary(name).call(x), expected, 7)
    check(pointwise.Unary(name).call(x[::-3]), expected[::-3], 7)


def test_erfc_is_rounded_once_where_products_are_fused():
    mpmath = pytest.importorskip("mpmath")
    generator = np.random.default_rng(0)
    parts = [
        generator.uniform(low, high, 700) for low, high in ((-6, 0), (0, 1), (1, 8), (8, 26.5))
    ]
    x = np.concatenate([*parts, [0.0, 0.5, 0.625, -0.625, np.nextafter(0.625, 1), 4.0, 26.5]])
    with mpmath.workprec(120):
        exact = [mpmath.erfc(mpmath.mpf(float(value))) for value in x]
        found = pointwise.Unary("erfc").call(x)
        units = np.spacing(np.array([float(value) for value in exact]))
        off = [
            abs(float((mpmath.mpf(float(y)) - e) / float(u)))
            for y, e, u in zip(found, exact, units, strict=True)
        ]
    assert max(off) < (0.9 if cpu_features.level() in ("v3", "v4") else 4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inverse_of_erf(dtype):
    generator = np.random.default_rng(0)
    close = 1 - np.float64(10) ** generator.uniform(np.log10(np.finfo(dtype).eps), 0, 20_000)
    small = np.float64(10) ** generator.uniform(-300 if dtype is np.float64 else -37, 0, 20_000)
    x = np.concatenate([close, -close, small, generator.uniform(-1, 1, 50_000)]).astype(dtype)
    x = np.clip(x, -1 + np.finfo(dtype).epsneg, 1 - np.finfo(dtype).epsneg)
    check(pointwise.Unary("erfinv").call(x), special.erfinv(x.astype(np.float64)), 3)
    ends = np.array([0.0, -0.0, 1, -1, 1.5, -2, np.inf, -np.inf, np.nan], dtype)
    result = pointwise.Unary("erfinv").call(ends)
    nothing = np.nan
    expected = np.array([0.0, -0.0, np.inf, -np.inf, *[nothing] * 5], dtype)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(np.signbit(result[:4]), np.signbit(expected[:4]))


def test_logarithm_of_the_gamma_function():
    generator = np.random.default_rng(0)
    positive = np.float64(10) ** generator.uniform(-44, 36, 50_000)
    x = np.concatenate([positive, generator.uniform(0, 5, 100_000), [1e-45, 1, 2, 3, 1e10]])
    x = x.astype(np.float32)
    check(pointwise.Unary("lgamma").call(x), special.gammaln(x.astype(np.float64)), 1)
    x = -generator.uniform(0, 100, 50_000).astype(np.float32)
    x = x[x != np.rint(x)]
    expected = special.gammaln(x.astype(np.float64))
    result = pointwise.Unary("lgamma").call(x)
    np.testing.assert_allclose(result, expected, rtol=1e-7, atol=1e-8)
    ends = np.array([0.0, -0.0, -1, -7, -1e10, np.inf, -np.inf, 3e38], np.float32)
    assert np.all(pointwise.Unary("lgamma").call(ends) == np.inf)
    np.testing.assert_array_equal(
        np.signbit(pointwise.Unary("lgamma").call(np.float32([1, 2]))), False
    )
    assert np.isnan(pointwise.Unary("lgamma").call(np.float32([np.nan])))


@pytest.mark.parametrize("step", [1, 3])
def test_logarithm_of_the_gamma_function_near_its_zeros(step):
    mpmath = pytest.importorskip("mpmath", reason="the reference has more digits than double")
    generator = np.random.default_rng(0)
    whole = np.arange(3, 19)
    widths = np.minimum(0.2, 1 / special.factorial(whole))
    near = [-n + w * generator.uniform(-3, 3, 40) for n, w in zip(whole, widths, strict=True)]
    zeros = [-2.4570247382208006, -2.7476826467274127, -3.955294284858598, -4.991544640560048]
    beside = [zero + np.spacing(zero) * np.arange(-3, 4) for zero in zeros]
    x = np.concatenate([*near, *beside, generator.uniform(-4, -2, 200), [-25.3, 2.5, 0.1]])
    x = x[x != np.rint(x)]
    found = pointwise.Unary("lgamma").call(np.repeat(x, step)[::step])
    with mpmath.workdps(50):
        exact = [mpmath.log(abs(mpmath.gamma(mpmath.mpf(float(one))))) for one in x]
        errors = [
            float(abs(mpmath.mpf(float(one)) - other))
            for one, other in zip(found, exact, strict=True)
        ]
    assert np.max(np.array(errors) / np.spacing(np.abs(np.array(exact, float)))) <= 8


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_next_numbers(dtype):
    info = np.finfo(dtype)
    numbers = np.array(
        [
            0.0,
            -0.0,
            np.inf,
            -np.inf,
            np.nan,
            1,
            -1,
            2,
            info.max,
            -info.max,
            info.tiny,
            info.smallest_subnormal,
        ],
        dtype,
    )
    x, y = np.meshgrid(numbers, numbers)
    with np.errstate(all="ignore"):
        expected = np.nextafter(x, y)
    result = pointwise.Binary("nextafter").call(x, y)
    np.testing.assert_array_equal(result, expected)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(result[known]), np.signbit(expected[known]))


@LONG
def test_angles_and_hypotenuses_of_two():
    generator = np.random.default_rng(0)
    many = every_kind_of_double()
    x, y = generator.permutation(many)[:100_000], generator.permutation(many)[:100_000]
    ends = np.concatenate([SPECIAL, -SPECIAL])
    first, second = (side.ravel() for side in np.meshgrid(ends, ends))
    x, y = np.concatenate([x, first]), np.concatenate([y, second])
    with np.errstate(all="ignore"):
        wide = x.astype(np.longdouble), y.astype(np.longdouble)
        check(pointwise.Binary("atan2").call(x, y), np.arctan2(*wide), 3)
        check(Fused("hypot").call((x, y)), np.hypot(*wide), 2)
        signs = np.array([0.0, -0.0, 1.0, -1.0])
        first, second = (np.ascontiguousarray(side.ravel()) for side in np.meshgrid(signs, signs))
        result, expected = pointwise.Binary("atan2").call(first, second), np.arctan2(first, second)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(np.signbit(result), np.signbit(expected))


def test_logarithms_of_powers_are_whole_in_double():
    tens = np.float64([f"1e{k}" for k in range(-300, 300)])
    np.testing.assert_array_equal(pointwise.Unary("log10").call(tens), np.arange(-300, 300))
    whole = np.arange(-1074, 1024, dtype=np.float64)
    powers = np.ldexp(1.0, whole.astype(np.int32))
    np.testing.assert_array_equal(pointwise.Unary("exp2").call(whole), powers)
    np.testing.assert_array_equal(pointwise.Unary("log2").call(powers), whole)


@pytest.mark.parametrize("name", ["fmod", "remainder", "floor_divide"])
@pytest.mark.parametrize("far", [False, True])
def test_remainders_of_doubles_are_exact(name, far):
    generator = np.random.default_rng(0)
    x = np.float64(10) ** generator.uniform(-20, 20, 50_000)
    y = x * np.float64(2) ** generator.uniform(-50, 3, 50_000)
    x *= generator.choice([-1.0, 1.0], x.size)
    y *= generator.choice([-1.0, 1.0], x.size)
    x[:1000] = np.round(x[:1000]) * np.abs(y[:1000])  # whole quotients
    x[1000:2000] = y[1000:2000] * generator.integers(1, 1000, 1000)  # and what is beside them
    if far:
        x[::300] = generator.choice(SPECIAL, x[::300].size)
        y[::350] = generator.choice(SPECIAL, y[::350].size)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x, y)
        some = getattr(np, name)(x, np.float64(0.75))
    np.testing.assert_array_equal(pointwise.Binary(name).call(x, y), expected)
    np.testing.assert_array_equal(pointwise.Binary(name).call(x, np.asarray(0.75)), some)


@LONG
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scaled_error_function(dtype):
    with np.errstate(all="ignore"):
        x = every_kind_of_double().astype(dtype)
        wide = x.astype(np.longdouble)
        # Of negative numbers SciPy rounds the square, which the exponential shows.
        mirrored = 2 * np.exp(wide * wide) - special.erfcx(-x.astype(np.float64))
        expected = np.where(x < -0.5, mirrored, special.erfcx(x.astype(np.float64)))
        call = Fused("erfcx").call
        ulps = 1 if dtype is np.float32 else 10  # SciPy's is up to 7 off, ours 3
        check(call((x,)), expected, ulps)
        check(call((x[::-3],)), expected[::-3], ulps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logarithm_of_the_normal_distribution(dtype):
    with np.errstate(all="ignore"):
        x = every_kind_of_double().astype(dtype)
    # What is left of 1 further up is as exact as erfc of a rounded argument: to some x^2 units.
    lower, upper = x[~(x > 3)], np.linspace(3, 39, 10_000).astype(dtype)
    call = Fused("log_ndtr").call
    with np.errstate(all="ignore"):
        expected = special.log_ndtr(lower.astype(np.float64))
        check(call((lower,)), expected, 1 if dtype is np.float32 else 12)
        check(call((lower[::-3],)), expected[::-3], 1 if dtype is np.float32 else 12)
        expected = special.log_ndtr(upper.astype(np.float64))
    tolerance = 1e-6 if dtype is np.float32 else 1e-12
    np.testing.assert_allclose(call((upper,)), expected, tolerance, np.finfo(dtype).tiny)
    assert call((np.array([np.inf], dtype),)) == 0


@LONG
def test_powers_of_doubles():
    """As exact as 80-bit ones can tell: their own logarithms lose some bits where the exponent is large."""
    generator = np.random.default_rng(0)
    uniform = generator.uniform
    n = 50_000
    kinds = [
        (uniform(0, 10, n), uniform(-10, 10, n)),
        (np.exp(uniform(-700, 700, n)), uniform(-2, 2, n)),
        (uniform(-50, 50, n), np.round(uniform(-20, 20, n))),
        (np.float64(10) ** uniform(-320, -300, n), uniform(-1, 1, n)),
        (1 + uniform(-1e-3, 1e-3, n), uniform(-1e4, 1e4, n)),
    ]
    for x, y in kinds:
        expected = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
        check(pointwise.Binary("pow").call(x, y), expected, 1)
        check(pointwise.Binary("pow").call(x[::-2], y[::-2]), expected[::-2], 1)


def test_powers_of_special_doubles():
    whole = [2.0, 3.0, 1024.0, 2.0**53, 2.0**53 + 2, 2.5, 0.5, 1e300]
    ends = np.concatenate([SPECIAL, -SPECIAL, whole, np.negative(whole)])
    x, y = (side.ravel() for side in np.meshgrid(ends, ends))
    with np.errstate(all="ignore"):
        expected = np.power(x, y)
    check(pointwise.Binary("pow").call(x, y), expected, 1)


def test_powers_that_doubles_have_are_exact():
    for exponent in range(1, 53):
        x = np.arange(1, 1 + min(int(2.0 ** (53 / exponent)), 5000), dtype=np.float64)
        exact = np.array([float(int(base) ** exponent) for base in x])
        fits = exact < 2.0**53
        exponents = np.full(x.shape, float(exponent))
        found = pointwise.Binary("pow").call(-x, exponents)
        np.testing.assert_array_equal(found[fits], (exact * (-1) ** exponent)[fits])
        if exponent < 3:
            roots = pointwise.Binary("pow").call(exact, 1 / exponents)
            np.testing.assert_array_equal(roots, x)
