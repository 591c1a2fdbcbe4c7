"""Activations of integers, which are cut off or replaced: numbers beyond those of double among them."""

import numpy as np
import pytest

import tensorplug as tp
import tensorplug.nn.functional as F

pytest.importorskip("tensorplug_cpu_cython.pointwise", reason="cpu_cython is not built")

DTYPES = ["int64", "int32", "int16", "int8", "uint8"]
LAYOUTS = [lambda a: a, lambda a: a.T, lambda a: a[::-1, ::2], lambda a: a[:0]]


def whole(name):
    """Return integers of all sizes, the ends of their range among them."""
    info = np.iinfo(name)
    array = np.random.default_rng(0).integers(info.min, info.max, (30, 40), name, endpoint=True)
    array[:20] = array[:20] % 21 - (10 if info.min else 0)
    array[0, :2] = info.min, info.max
    return array


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("numbers", [(0, 6), (3, 3), (2, 100)])
def test_cut_off_and_replaced(numbers, layout, name):
    array = layout(whole(name))
    given = (
        tp.from_numpy(np.ascontiguousarray(array)) if array.strides[0] < 0 else tp.from_numpy(array)
    )
    first, second = numbers
    np.testing.assert_array_equal(
        F.hardtanh(given, first, second).numpy(), np.clip(array, first, second)
    )
    np.testing.assert_array_equal(F.relu6(given).numpy(), np.clip(array, 0, 6))
    expected = np.where(array > first, array, array.dtype.type(second))
    np.testing.assert_array_equal(F.threshold(given, first, second).numpy(), expected)


def test_numbers_that_double_has_not():
    most = 2**62 + 1
    array = np.array([most - 1, most, most + 1, -most, 5])
    given = tp.from_numpy(array)
    assert F.threshold(given, most, 7).tolist() == [7, 7, most + 1, 7, 7]
    assert F.hardtanh(given, -most + 1, most).tolist() == [most - 1, most, most, -most + 1, 5]


@pytest.mark.parametrize("op", ["threshold", "hardtanh"])
@pytest.mark.parametrize("name", DTYPES)
def test_they_are_in_use(name, op):
    kernel = tp.explain(op, dtype=getattr(tp, name)).kernel
    assert kernel is not None
    assert kernel.plugin == "cpu_cython"
