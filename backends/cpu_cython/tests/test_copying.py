"""Joined, rolled and triangular copies, and slices, in every layout."""

import numpy as np
import pytest

pytest.importorskip("tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built")
from tensorplug_cpu_cython import copying, indexing

LAYOUTS = {
    "rows": lambda a: a,
    "transposed": lambda a: np.ascontiguousarray(a.T).T,
    "every second": lambda a: np.repeat(np.repeat(a, 2, 0), 2, -1)[::2, ..., ::2],
    "backwards": lambda a: a[::-1],
    "broadcast": lambda a: np.broadcast_to(a[:1], a.shape),
}
SHAPES = [(2, 3), (5, 3, 4), (1, 3), (7, 1, 2), (0, 3), (3, 0)]


@pytest.fixture(params=["float32", "complex128", "bool", "int16"])
def make(request):
    generator = np.random.default_rng(0)
    return lambda shape: generator.integers(0, 2, shape).astype(request.param)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_joins(make, shape, layout):
    arrays = [LAYOUTS[layout](make(shape)) for _ in range(3)]
    for dim in range(len(shape)):
        np.testing.assert_array_equal(copying.cat(arrays, dim), np.concatenate(arrays, dim))
        np.testing.assert_array_equal(copying.stack(arrays, dim), np.stack(arrays, dim))
    np.testing.assert_array_equal(copying.stack(arrays, len(shape)), np.stack(arrays, len(shape)))


def test_a_join_of_many_and_of_unequal_pieces(make):
    arrays = [make((4, n % 3)) for n in range(40)]
    np.testing.assert_array_equal(copying.cat(arrays, 1), np.concatenate(arrays, 1))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_rolls(make, shape, layout):
    array = LAYOUTS[layout](make(shape))
    for shifts, dims in (((2,), (0,)), ((-7, 1), (1, 0)), ((0,), (1,)), ((10**30,), (0,))):
        expected = array
        for shift, dim in zip(shifts, dims, strict=True):
            expected = np.roll(expected, shift % max(shape[dim], 1), dim)
        result = copying.roll(array, shifts, dims)
        np.testing.assert_array_equal(result, expected)
        assert not np.may_share_memory(result, array)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_triangles(make, shape, layout):
    array = LAYOUTS[layout](make(shape))
    for diagonal in (-10, -1, 0, 1, 2, 10**30):
        near = max(min(diagonal, 99), -99)
        np.testing.assert_array_equal(
            copying.triangle(array, diagonal, False), np.tril(array, near)
        )
        np.testing.assert_array_equal(copying.triangle(array, diagonal, True), np.triu(array, near))


def refused():
    raise AssertionError("this was left to the fallback")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "uint8"])
def test_sequences(dtype):
    for start, step in ((0, 1), (5, -2), (1 << 40, 3)):
        expected = (np.arange(1000) * step + start).astype(dtype)
        result = copying.arange(start, step, 1000, np.dtype(dtype), refused)
        np.testing.assert_array_equal(result, expected)
    if dtype.startswith("float"):
        expected = (np.arange(1000.0) * 0.1 + 0.3).astype(dtype)
        result = copying.arange(0.3, 0.1, 1000, np.dtype(dtype), refused)
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(2, 3), (5, 3, 4)])
def test_slices_are_read_and_written_in_any_layout(shape, layout):
    generator = np.random.default_rng(0)
    array = LAYOUTS[layout](generator.standard_normal(shape, dtype=np.float32))
    for dim in range(len(shape)):
        at = generator.integers(0, shape[dim], 4)
        key = (*[slice(None)] * dim, at)
        np.testing.assert_array_equal(
            indexing.index_select_kernel(refused)(array, dim, at), array[key]
        )
        values = generator.standard_normal(array[key].shape, dtype=np.float32)
        expected = array.copy()
        np.add.at(expected, key, values)
        added = indexing.put_slices(array, dim, at, values, True, refused)
        np.testing.assert_allclose(added, expected, rtol=1e-6)
        for missing in (-1, shape[dim]):
            fallen = indexing.index_select_kernel(lambda *_: "declined")(
                array, dim, np.array([missing])
            )
            assert isinstance(fallen, str)


def test_pairs_of_indices_write_into_a_copy_laid_out_otherwise():
    array = np.arange(12.0).reshape(4, 3).T
    at = np.array([0, 2]), np.array([3, 1])
    expected = array.copy()
    expected[at] = 0
    result = indexing.index_put(array, list(at), np.zeros(2), False, refused)
    np.testing.assert_array_equal(result, expected)
