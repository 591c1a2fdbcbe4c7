"""Copies with a number around them, in every layout."""

import itertools

import numpy as np
import pytest

pytest.importorskip("tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built")
from tensorplug_cpu_cython.padding import constant_pad_nd

LAYOUTS = {
    "rows": lambda a: a,
    "transposed": lambda a: np.ascontiguousarray(a.T).T,
    "every second": lambda a: np.repeat(a, 2, -1)[..., ::2],
    "every second row": lambda a: np.repeat(a, 2, 0)[::2],
    "backwards": lambda a: a[::-1],
    "broadcast": lambda a: np.broadcast_to(a[:1], a.shape),
}
DTYPES = ["bool", "int16", "float32", "complex64", "complex128", "half pair"]
SHAPES = [(5,), (40,), (1, 3), (3, 40), (2, 3, 4), (2, 1, 3, 20), (3, 0), (0, 3)]
# From the last dimension on: of nothing, of one side, of both, of more than a row, and of less than there is.
WIDTHS = [(0, 0), (1, 0), (2, 3), (20, 1), (-1, 0), (2, -1), (-1, -2)]


def expected(array, sizes, number):
    for d in range(len(sizes) // 2):
        axis = array.ndim - 1 - d
        before, behind = sizes[2 * d : 2 * d + 2]
        size = array.shape[axis]
        first, last = max(-before, 0), size - max(-behind, 0)
        array = array.take(range(first, max(last, first)), axis)
        widths = [(0, 0)] * array.ndim
        widths[axis] = max(before, 0), max(behind, 0)
        result = np.empty(
            [n + sum(w) for n, w in zip(array.shape, widths, strict=True)], array.dtype
        )
        result[...] = number
        result[tuple(slice(w[0], w[0] + n) for n, w in zip(array.shape, widths, strict=True))] = (
            array
        )
        array = result
    return array


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_pads(shape, dtype, layout):
    generator = np.random.default_rng(0)
    pair = dtype == "half pair"
    array = generator.integers(0, 100, shape).astype("uint32" if pair else dtype)
    array = LAYOUTS[layout](array.view([("re", "f2"), ("im", "f2")]) if pair else array)
    for count in range(1, min(len(shape), 3) + 1):
        for sizes in itertools.product(WIDTHS, repeat=count):
            flat = tuple(itertools.chain(*sizes))
            kept = [
                n + min(w[0], 0) + min(w[1], 0) for n, w in zip(shape[::-1], sizes, strict=False)
            ]
            if min(kept) < 0:
                continue
            for number in (0, 1):
                result = constant_pad_nd(array, flat, number)
                assert result.flags.c_contiguous
                np.testing.assert_array_equal(result, expected(array, flat, number))


def test_several_threads():
    array = np.arange(600_000, dtype="f4").reshape(300, 2000)
    np.testing.assert_array_equal(
        constant_pad_nd(array, (1, 2, 3, 4), 7), expected(array, (1, 2, 3, 4), 7)
    )
    np.testing.assert_array_equal(
        constant_pad_nd(array[0], (7, 5), 7), expected(array[0], (7, 5), 7)
    )
