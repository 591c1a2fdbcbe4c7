"""Views, against NumPy's own."""

import numpy as np
import pytest

strided = pytest.importorskip("tensorplug_cpu_cython.strided", reason="cpu_cython is not built")

BASE = np.arange(120.0).reshape(4, 5, 6)
ARRAYS = [BASE, BASE.T, BASE[::-1, ::2], np.asfortranarray(BASE)]


def same(view, expected):
    assert view.shape == expected.shape
    assert view.dtype == expected.dtype
    assert view.size == 0 or view.ctypes.data == expected.ctypes.data
    assert view.flags.writeable == expected.flags.writeable
    assert view.flags.c_contiguous == expected.flags.c_contiguous
    np.testing.assert_array_equal(view, expected)


@pytest.mark.parametrize("array", ARRAYS)
@pytest.mark.parametrize(
    "key",
    [
        (),
        (0,),
        (3, slice(None)),
        (slice(1, 3, 1), None, 2),
        (None, slice(0, 100, 2), slice(2, 2, 1), 1),
        (slice(4, 4, 1),),
        (1, 1, 1),
    ],
)
def test_basic_keys(array, key):
    shape_fits = not isinstance(key[0] if key else None, int) or key[0] < len(array)
    if shape_fits:
        same(strided.basic_index(array, key), array[(*key, ...)])


def test_a_key_that_does_not_fit():
    for key in ((4,), (-5,), (0, 0, 0, 0)):
        with pytest.raises(IndexError):
            strided.basic_index(BASE, key)


@pytest.mark.parametrize("array", ARRAYS)
def test_rearranged(array):
    same(strided.permute(array, (2, 0, 1)), array.transpose(2, 0, 1))
    wide = array[:1, None]
    view = strided.expand(wide, (2, 7, 3, *wide.shape[2:])[-wide.ndim :])
    np.testing.assert_array_equal(view, np.broadcast_to(wide, view.shape))
    assert view.flags.writeable
    assert strided.expand(wide, (0, *wide.shape)).shape == (0, *wide.shape)
    for dim in range(3):
        windows = np.lib.stride_tricks.sliding_window_view(array, 2, dim)
        step = (slice(None),) * dim + (slice(None, None, 2),)
        np.testing.assert_array_equal(strided.unfold(array, dim, 2, 2), windows[step])
    for offset in (-9, -4, -1, 0, 2, 9):
        for dim1, dim2 in ((0, 1), (2, 0), (1, 2)):
            expected = np.diagonal(array, offset, dim1, dim2)
            np.testing.assert_array_equal(strided.diagonal(array, offset, dim1, dim2), expected)


def test_what_may_not_be_written_to_stays_so():
    frozen = BASE.copy()
    frozen.flags.writeable = False
    assert not strided.basic_index(frozen, (0,)).flags.writeable
    assert not strided.permute(frozen, (0, 1, 2)).flags.writeable


def test_a_view_keeps_its_memory():
    view = strided.basic_index(np.arange(10**6), (slice(5, 9, 1),))
    np.testing.assert_array_equal(view, [5, 6, 7, 8])
