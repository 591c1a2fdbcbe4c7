"""Bessel's, Airy's and zeta functions of float, incomplete gamma functions, and orthogonal polynomials."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorplug_cpu_cython.special", reason="cpu_cython is not built")
from scipy import special

from tensorplug_cpu_cython.special import Function, orthogonal_polynomial_kernel

UNIT = 2.0**-24
POLYNOMIALS = {
    "chebyshev_t": special.eval_chebyt,
    "chebyshev_u": special.eval_chebyu,
    "hermite_h": special.eval_hermite,
    "hermite_he": special.eval_hermitenorm,
    "laguerre_l": special.eval_laguerre,
    "legendre_p": special.eval_legendre,
}


def exact(name: str, x: Any) -> Any:
    """Return the values in double."""
    wide = x.astype(np.float64)
    return special.airy(wide)[0] if name == "airy" else getattr(special, name)(wide)


def points(low: float, high: float) -> Any:
    return np.random.default_rng(0).uniform(low, high, 50_000).astype(np.float32)


@pytest.mark.parametrize("name", ["zeta", "gammainc", "gammaincc"])
@pytest.mark.parametrize("count", [1, 15, 17, 128, 300])
def test_corners_among_others(name: str, count: int) -> None:
    """Pairs of every kind in one block, those that are NaN, infinite and by a formula, in every layout."""
    corners = np.array(
        [np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0, -1.5, 0.5, 1.0, 2.0, 2.5, 3.0, 200.0]
    )
    first, second = np.random.default_rng(count).choice(corners, (2, count)).astype(np.float32)
    for a, b in (
        (first, second),
        (first[::-2], second[::-2]),
        (first, second[:1]),
        (first[:1], second),
    ):
        with np.errstate(all="ignore"):
            expected = getattr(special, name)(a.astype(np.float64), b.astype(np.float64))
            expected = expected.astype(np.float32)
        np.testing.assert_allclose(Function(name).of_two(a, b), expected, 2 * UNIT, 1e-45)


@pytest.mark.parametrize("name", ["j0", "j1", "y0", "y1"])
def test_bessel_functions(name: str) -> None:
    small, large = points(0, 9), points(7, 1e5)
    tiny = np.float32(10) ** points(-30, 0)
    for x in (small, large, tiny, -small, -large) if name[0] == "j" else (small, large, tiny):
        amplitude = np.hypot(exact("j0", np.abs(x)), exact("y0", np.abs(x)))
        for given in (x, x[::-2]):
            expected = exact(name, given)
            size = np.maximum(amplitude if given is x else amplitude[::-2], np.abs(expected))
            error = np.abs(Function(name).of_one(given) - expected) / size
            assert error.max() < 8 * UNIT
    if name[0] == "j":  # the zeros are exact
        zeros = special.jn_zeros(int(name[1]), 2).astype(np.float32)
        np.testing.assert_allclose(Function(name).of_one(zeros), exact(name, zeros), 1e-6)


@pytest.mark.parametrize("name", ["k0", "k0e", "k1", "k1e"])
def test_modified_bessel_functions_of_the_second_kind(name: str) -> None:
    for x in (points(0, 3), points(1.9, 2.1), points(2, 85), np.float32(10) ** points(-30, 0)):
        expected = exact(name, x)
        assert np.max(np.abs(Function(name).of_one(x) - expected) / expected) < 12 * UNIT


def test_airy() -> None:
    for x in (points(-5, 12), points(-300, -5), points(-12000, -300)):
        expected = exact("airy", x)
        size = np.abs(expected) if x.max() > 0 else np.abs(x.astype(np.float64)) ** -0.25
        assert np.max(np.abs(Function("airy").of_one(x) - expected) / size) < 3 * UNIT


#: Airy's function by mpmath 1.3 with 40 digits, at numbers that a double is.
FAR = {
    -123456.75: -0.0227808425686623686, -1000.5: -0.0468954615156141259, -100.25: -0.127193667607568035,
    -10.5: -0.311926035051050601, -10.0009765625: 0.0392681330594921318,
    10.0009765625: 1.10132039904961091e-10, 10.5: 2.20227451928340164e-11, 25.75: 1.84243102785675541e-39,
    60.5: 5.7295688032494427e-138, 100.25: 2.15779323320419406e-292,
}  # fmt: skip


def test_airy_of_double_far_from_zero() -> None:
    call = Function("airy").of_one
    for x, value in FAR.items():
        # Of large numbers the angles are known to some units.
        np.testing.assert_allclose(call(np.array([x])), value, 2e-15 if abs(x) < 2000 else 1e-13)
    # Where the expansions begin they go on from SciPy's function.
    around = np.array([-10.0, 10.0])
    near, far = call(around), call(np.nextafter(around, 2 * around))
    np.testing.assert_allclose(near, far, 3e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_spherical_bessel_function(dtype: Any) -> None:
    x = np.concatenate([points(-30, 30), points(-1e8, 1e8)]).astype(dtype)
    found = Function("spherical_j0").of_one(x)
    most = 4 * np.finfo(dtype).eps
    expected = special.spherical_jn(0, np.abs(x.astype(np.float64)))
    np.testing.assert_allclose(found, expected, most, most)


def gamma_pairs(count: int) -> dict[str, Any]:
    generator = np.random.default_rng(0)
    a = 10.0 ** generator.uniform(-3, 2.3, count)
    return {
        "small": generator.uniform(0, 1, (2, count)),
        "middle": generator.uniform(0, 20, (2, count)),
        "large": generator.uniform(0, 150, (2, count)),
        "any": 10.0 ** generator.uniform(-8, 3, (2, count)),
        "near each other": np.stack([a, a * generator.uniform(0.7, 1.4, count)]),
        "of a small order": 10.0 ** generator.uniform([[-6], [-0.5]], [[0.3], [0.6]], (2, count)),
    }


@pytest.mark.parametrize("which", gamma_pairs(1))
@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_incomplete_gamma_functions_of_float(name: str, which: str) -> None:
    a, x = gamma_pairs(5000)[which].astype(np.float32)
    expected = getattr(special, name)(a.astype(np.float64), x.astype(np.float64))
    for b, y, of in ((a, x, slice(None)), (a[::-3], x[::-3], slice(None, None, -3))):
        error = np.abs(Function(name).of_two(b, y) - expected[of])
        assert np.max(error - expected[of] * 1.01 * UNIT) <= np.spacing(np.float32(0))


@pytest.mark.parametrize("which", gamma_pairs(1))
@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_incomplete_gamma_functions_of_double(name: str, which: str) -> None:
    """The logarithm of a value, as of all exponentials, multiplies the rounding of its argument."""
    mpmath = pytest.importorskip("mpmath")
    a, x = gamma_pairs(100)[which]
    found = Function(name).of_two(a, x)
    with mpmath.workdps(40):
        for order, at, value in zip(a, x, found, strict=True):
            order, at = mpmath.mpf(float(order)), mpmath.mpf(float(at))
            ends = (0, at) if name == "gammainc" else (at, mpmath.inf)
            exact = mpmath.gammainc(order, *ends, regularized=True)
            if exact > 1e-290:
                most = (50 - 2 * mpmath.log(exact)) * np.finfo(float).eps
                assert abs(mpmath.mpf(float(value)) / exact - 1) < most


def test_zeta() -> None:
    generator = np.random.default_rng(0)
    order = np.concatenate([1 + 10.0 ** generator.uniform(-6, 3, 5000), np.arange(2.0, 152)])
    order = order.astype(np.float32)
    ranges = [10.0 ** generator.uniform(low, high, 5150) for low, high in ((-6, 0), (0, 2), (2, 9))]
    for q in (*ranges, generator.uniform(-40, 0, 5150)):
        q = q.astype(np.float32)
        with np.errstate(all="ignore"):
            expected = special.zeta(order.astype(np.float64), q.astype(np.float64))
            expected = expected.astype(np.float32)
        np.testing.assert_allclose(Function("zeta").of_two(order, q), expected, 2 * UNIT, 1e-45)


@pytest.mark.parametrize("name", ["j0", "j1", "y0", "y1", "k0", "k0e", "k1", "k1e", "airy"])
def test_ends(name: str) -> None:
    """As in double; of the huge the amplitude counts alone."""
    ends = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0], np.float32)
    expected = exact(name, ends)
    if name == "airy":
        expected[2] = 0  # SciPy has nan
    np.testing.assert_allclose(Function(name).of_one(ends), expected, 1e-6)
    huge = np.array([1e7, 1e20, 3e38], np.float32)
    assert np.all(np.abs(Function(name).of_one(huge)) <= 1.01 * np.sqrt(np.pi / 2 / huge))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("family", POLYNOMIALS)
def test_orthogonal_polynomials(family: str, dtype: Any) -> None:
    kernel = orthogonal_polynomial_kernel()
    generator = np.random.default_rng(0)
    for count in (1, 15, 127, 129, 1000):
        x = generator.uniform(-1, 1, count).astype(dtype)
        n = generator.integers(0, 12, count)
        expected = POLYNOMIALS[family](n, x.astype(np.float64))
        most = 100 * np.finfo(dtype).eps * np.max(np.abs(expected))
        for a, b in ((x, n.astype(dtype)), (x[::-1], n.astype(dtype)[::-1])):
            found = kernel(a, b, family)
            assert found.dtype == dtype
            np.testing.assert_allclose(found if a is x else found[::-1], expected, 0, most)
        number = kernel(x, 5, family)
        np.testing.assert_allclose(number, POLYNOMIALS[family](5, x.astype(float)), 0, most * 10)


@pytest.mark.parametrize("family", [*POLYNOMIALS, "chebyshev_v", "chebyshev_w"])
def test_degrees_that_are_none(family: str) -> None:
    degrees = np.array([-1, 0.9, 1.9, np.nan, np.inf], np.float32)
    found = orthogonal_polynomial_kernel()(np.full(5, 0.5, np.float32), degrees, family)
    first = orthogonal_polynomial_kernel()(np.array([0.5], np.float32), 1, family)[0]
    np.testing.assert_array_equal(found, [0, 1, first, 0, 0])
