"""amax, amin and their places: NaN anywhere, in any vector and behind the last one, at any strides."""

import numpy as np
import pytest

cpu_features = pytest.importorskip(
    "tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built"
)
import tensorplug as tp  # noqa: E402
from tensorplug_cpu_cython import reductions, softmax  # noqa: E402

KINDS = {"amax": (reductions.MAX, np.max), "amin": (reductions.MIN, np.min)}
WIDTHS = [1, 2, 3, 5, 15, 16, 17, 31, 63, 64, 65, 100, 129, 300]


def reduced(name, array, dim):
    return reductions.Reduction(KINDS[name][0], None).call(array, dim, False)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", WIDTHS)
def test_nan_wins_wherever_it_is(name, dtype, width):
    table = np.random.default_rng(0).standard_normal((width, width)).astype(dtype)
    np.fill_diagonal(table, np.nan)  # one in each row and column, at every place
    assert np.isnan(reduced(name, table, (1,))).all()
    assert np.isnan(reduced(name, table, (0,))).all()
    assert np.isnan(reduced(name, table, (0, 1)))
    table[:, 0] = np.copysign(np.nan, -1)
    assert np.isnan(reduced(name, table, (1,))).all()


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "i4", "i2", "i1", "u1"])
@pytest.mark.parametrize("width", WIDTHS)
def test_extremes_at_every_place(name, dtype, width):
    table = np.full((width, width), 5, dtype)
    np.fill_diagonal(table, 9 if name == "amax" else 1)
    expected = np.full(width, 9 if name == "amax" else 1, dtype)
    for dim in (0, 1):
        np.testing.assert_array_equal(reduced(name, table, (dim,)), expected)
        result = reductions.ArgExtreme(0 if name == "amax" else 1, None).call(table, dim, False)
        np.testing.assert_array_equal(result, np.arange(width))


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "i4", "i2", "i1", "u1", "?"])
@pytest.mark.parametrize(
    "shape", [(1, 1), (5, 3), (40, 5, 5), (7, 200), (200, 7), (3, 90, 40), (700,)]
)
def test_first_places_of_few_values(shape, dtype, kind):
    array = np.random.default_rng(0).integers(-3, 4, shape)
    array = (np.abs(array) if dtype in ("u1", "?") else array).astype(dtype)
    for dim in range(array.ndim):
        for keep in (False, True):
            values, places = reductions.Extreme(kind, None).call(array, dim, keep)
            extreme, place = ((np.max, np.argmax), (np.min, np.argmin))[kind]
            np.testing.assert_array_equal(values, extreme(array, dim, keepdims=keep))
            np.testing.assert_array_equal(places, place(array, dim, keepdims=keep))
            assert values.dtype == array.dtype


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("dims", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_of_strided_arrays_and_infinities(name, dims, threads):
    before = cpu_features.get_num_threads()
    cpu_features.set_num_threads(threads)
    try:
        array = np.random.default_rng(0).standard_normal((40, 70, 90)).astype(np.float32)
        array[3] = np.inf
        array[5, :, 8] = -np.inf
        array[:, 6] = -0.0
        for view in (array, array[::-1, :, ::2], array.transpose(2, 0, 1), array[:, 1:, 3:]):
            expected = KINDS[name][1](view, axis=dims)
            np.testing.assert_array_equal(reduced(name, view, dims), expected)
    finally:
        cpu_features.set_num_threads(before)


@pytest.mark.parametrize("name", KINDS)
def test_a_row_of_infinities(name):
    for value in (np.inf, -np.inf):
        array = np.full((3, 130), value, np.float32)
        np.testing.assert_array_equal(reduced(name, array, (1,)), np.full(3, value))
        np.testing.assert_array_equal(reduced(name, array, (0,)), np.full(130, value))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", WIDTHS)
def test_softmax_of_rows_with_infinities_and_nan(dtype, width):
    from scipy import special

    array = (np.random.default_rng(0).standard_normal((9, width)) * 20).astype(dtype)
    array[1] = 1e4
    array[2, ::2] = -np.inf
    array[3, -1] = -1e30
    array[4, -1] = np.nan
    array[5, 0] = np.nan
    array[6, width // 2] = np.inf
    array[7] = -np.inf
    with np.errstate(all="ignore"):
        expected = special.softmax(array, 1)
        logarithm = special.log_softmax(array.astype(np.float64), 1)
        expected[6:8] = np.nan  # infinity over infinity
        logarithm[6:8] = np.nan
        if width == 1:
            expected[2] = logarithm[2] = np.nan
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(softmax.softmax(array, 1), expected, rtol=tolerance, atol=tolerance)
    result = softmax.log_softmax(array, 1)
    for number in (0, 1, 3, 4, 5, 8, *([7] if width > 1 else [])):
        np.testing.assert_allclose(
            result[number], logarithm[number], rtol=tolerance, atol=tolerance
        )
    assert not softmax.softmax(array, 1)[2, ::2].any() or width == 1


@pytest.mark.parametrize("dims", [(0,), (1,), (2,), (0, 2), (0, 1, 2), ()])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "?", "f2", "c8"])
def test_flip(dims, dtype):
    import tensorplug as tp

    for shape in ((3, 5, 70), (3, 0, 4), (1, 1, 1)):
        array = (np.arange(np.prod(shape)) % 13).reshape(shape).astype(dtype)
        result = tp.from_numpy(array).flip(dims) if dims else tp.flip(tp.from_numpy(array), ())
        np.testing.assert_array_equal(result.numpy(), np.flip(array, dims))
        turned = tp.from_numpy(array).permute(2, 0, 1).flip(dims)
        np.testing.assert_array_equal(turned.numpy(), np.flip(array.transpose(2, 0, 1), dims))


@pytest.mark.parametrize("shape", [(), (5,), (3, 70), (70, 3), (2, 3, 4), (0, 3)], ids=str)
def test_extremes_of_truth_values(shape):
    x = np.random.default_rng(0).random(shape) > 0.5
    kernels = {name: tp.explain(name, dtype=tp.bool).kernel for name in ("amin", "amax", "aminmax")}
    assert {kernel.plugin for kernel in kernels.values()} == {"cpu_cython"}
    for dim in range(-1, len(shape)):
        dims = tuple(range(len(shape))) if dim < 0 else (dim,)
        if not all(shape[d] for d in dims):
            continue
        for given in (x, np.asfortranarray(x)):
            for keepdim in (False, True):
                least, most = (x.min(dims, keepdims=keepdim), x.max(dims, keepdims=keepdim))
                np.testing.assert_array_equal(kernels["amin"].function(given, dims, keepdim), least)
                np.testing.assert_array_equal(kernels["amax"].function(given, dims, keepdim), most)
                one = None if dim < 0 else dim
                both = kernels["aminmax"].function(given, one, keepdim)
                for found, expected in zip(both, (least, most), strict=True):
                    assert found.dtype == np.bool_
                    np.testing.assert_array_equal(found, expected)
