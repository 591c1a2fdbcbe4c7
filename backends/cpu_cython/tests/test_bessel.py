"""Modified Bessel functions and the trigamma function against SciPy's of double."""

import numpy as np
import pytest

pytest.importorskip("tensorplug_cpu_cython.pointwise_fused", reason="cpu_cython is not built")
from scipy import special

from tensorplug_cpu_cython.pointwise_fused import Fused

ENDS = np.array([0.0, -0.0, np.inf, -np.inf, np.nan])


def errors(result, expected):
    """Return the errors in units in the last place, of numbers that are finite."""
    unit = np.spacing(
        np.maximum(np.abs(expected), np.finfo(result.dtype).tiny).astype(result.dtype)
    )
    return np.abs(result - expected) / unit.astype(np.float64)


# In double SciPy's own errors, of up to 17 units, count too.
@pytest.mark.parametrize(("dtype", "most"), [(np.float32, 5), (np.float64, 20)])
@pytest.mark.parametrize("name", ["i0", "i0e", "i1", "i1e"])
def test_modified_bessel_functions(name, dtype, most):
    generator = np.random.default_rng(0)
    call, exact = Fused(name).call, getattr(special, name)
    x = np.concatenate(
        [generator.uniform(-30, 30, 100_000), generator.uniform(-88, 88, 50_000), [8, 12, -8, -12]]
    )
    tiny = np.float64(10) ** generator.uniform(-300 if dtype is np.float64 else -44, 0, 10_000)
    x = np.concatenate([x, tiny, -tiny]).astype(dtype)
    if name.endswith("e"):
        x = np.concatenate([x, 1 / tiny.astype(dtype)[tiny > 1e-37]])
    assert np.max(errors(call((x,)), exact(x.astype(np.float64)))) <= most
    assert np.max(errors(call((x[::-3],)), exact(x[::-3].astype(np.float64)))) <= most


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["i0", "i0e", "i1", "i1e"])
def test_modified_bessel_functions_at_the_ends(name, dtype):
    call, exact = Fused(name).call, getattr(special, name)
    ends = ENDS.astype(dtype)
    odd, far = name.startswith("i1"), 0 if name.endswith("e") else np.inf
    expected = np.array([not odd, not odd, far, -far if odd else far, np.nan], dtype)
    np.testing.assert_array_equal(call((ends,)), expected)
    np.testing.assert_array_equal(np.signbit(call((ends[:2],))), [False, odd])
    # exp overflows before these do.
    late = np.asarray([90, 91.5] if dtype is np.float32 else [711, 713], dtype)
    wide = late.astype(np.float64)
    expected = exact(wide)
    if not name.endswith("e"):  # SciPy's overflow as exp does
        expected = getattr(special, f"{name}e")(wide) * np.exp(wide / 2) * np.exp(wide / 2)
    np.testing.assert_allclose(call((late,)), expected, 1e-6 if dtype is np.float32 else 1e-13)
    assert np.all(np.isinf(call((late + 8,))) == (not name.endswith("e")))


@pytest.mark.parametrize(("dtype", "most"), [(np.float32, 7), (np.float64, 8)])
def test_trigamma(dtype, most):
    generator = np.random.default_rng(0)
    call = Fused("trigamma").call
    powers = np.float64(10) ** generator.uniform(-18, 36, 20_000)
    x = np.concatenate([generator.uniform(0, 10, 100_000), powers, [0.5, 1, 2, 3]]).astype(dtype)
    assert np.max(errors(call((x,)), special.zeta(2, x.astype(np.float64)))) <= most
    x = -generator.uniform(0, 30, 50_000).astype(dtype)
    wide = x.astype(np.float64)
    nearest = np.pi * (wide - np.rint(wide))
    reflected = (np.pi / np.sin(nearest)) ** 2 - special.zeta(2, 1 - wide)
    assert np.max(errors(call((x,)), reflected)) <= most
    ends = np.concatenate([ENDS, [-1, -7, -1e10]]).astype(dtype)
    inf, nan = np.inf, np.nan
    np.testing.assert_array_equal(
        call((ends,)), np.array([inf, inf, 0, nan, nan, inf, inf, inf], dtype)
    )
