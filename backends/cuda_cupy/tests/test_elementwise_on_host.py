"""The functions of sources/elementwise.cuh, compiled for the host, are those of the CPU."""

import numpy as np
import pytest

import tensorplug as tp

pytestmark = pytest.mark.xdist_group("cuda sources on the host")

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.1, -0.1, 3.5, -7.25, 1e30, -1e-30, np.inf, -np.inf, np.nan]


@pytest.fixture(scope="module")
def call():
    import host

    return host.elementwise


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("function", "op"),
    [
        ("float_remainder", "remainder"),
        ("float_floor_divide", "floor_divide"),
        ("log_of_sum", "logaddexp"),
    ],
)
def test_floats(call, dtype, function, op):
    a, b = np.meshgrid(np.array(SPECIAL, dtype), np.array(SPECIAL, dtype))
    found = call(function, a.copy(), b.copy())
    expected = getattr(tp.ops, op)(tp.from_numpy(a.copy()), tp.from_numpy(b.copy())).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-6 if dtype == "float32" else 1e-14)
    zero = (expected == 0) & (found == 0)
    assert (np.signbit(found) == np.signbit(expected))[zero].all()


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize(
    ("function", "op"),
    [
        ("whole_fmod", "fmod"),
        ("shifted_left", "bitwise_left_shift"),
        ("shifted_right", "bitwise_right_shift"),
    ],
)
def test_integers(call, dtype, function, op):
    limits = np.iinfo(dtype)
    values = np.array([limits.min, limits.max, 1, 3, 7, limits.max // 3, 100, 5], dtype)
    by = np.array([1, 3, 7, 31, 63, 64, 100, limits.max], object)
    by = np.array([number for number in by if number <= limits.max], dtype)
    if limits.min < 0 and op != "fmod":
        by = np.append(by, np.array([-1, limits.min], dtype))
    a, b = np.meshgrid(values, by)
    expected = getattr(tp.ops, op)(tp.from_numpy(a.copy()), tp.from_numpy(b.copy())).numpy()
    assert call(function, a.copy(), b.copy()).tolist() == expected.tolist()
