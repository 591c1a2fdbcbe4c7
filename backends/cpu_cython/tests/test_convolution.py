"""Convolutions of each channel by itself, and of single places, in rows, against NumPy's in float64."""

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from numpy.testing import assert_allclose

cpu_features = pytest.importorskip(
    "tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built"
)
import tensorplug as tp  # noqa: E402
from tensorplug_cpu_cython import convolution_depthwise  # noqa: E402
from tensorplug_cpu_numpy.kernels import convolution as reference  # noqa: E402

NAMES = ("convolution", "convolution_input", "convolution_weight")


@pytest.fixture(params=[1, 3], ids=lambda n: f"{n} threads")
def threads(request):
    before = cpu_features.get_num_threads()
    cpu_features.set_num_threads(request.param)
    yield
    cpu_features.set_num_threads(before)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def positions(size, kernel, stride, padding, dilation):
    each = zip(size, kernel, stride, padding, dilation, strict=True)
    return [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in each]


def problem(shape, weight, stride, padding, dilation, groups, bias=True):
    """Return the arguments of each of the three."""
    options = (stride, padding, dilation, groups)
    x, w = numbers(*shape), numbers(*weight, seed=1)
    where = positions(shape[2:], weight[2:], stride, padding, dilation)
    g = numbers(shape[0], weight[0], *where, seed=2)
    b = numbers(weight[0], seed=3) if bias else None
    return (
        (x, w, b, *options),
        (g, w, tuple(shape[2:]), *options),
        (x, g, tuple(weight[2:]), *options),
    )


def check(module, problems, names=NAMES):
    for name, arguments in zip(names, problems, strict=True):
        wide = [a.astype(float) if isinstance(a, np.ndarray) else a for a in arguments]
        expected = getattr(reference, name)(*wide)
        found = getattr(module, name)(*arguments)
        assert found.dtype == np.float32
        assert found.flags.c_contiguous
        assert_allclose(found, expected, rtol=1e-4, atol=1e-3 if name == NAMES[2] else 2e-5)


@st.composite
def windows(draw):
    dims = draw(st.integers(1, 2))

    def per_dimension(low, high):
        return tuple(draw(st.lists(st.integers(low, high), min_size=dims, max_size=dims)))

    channels = draw(st.sampled_from([1, 3, 16, 37]))
    shape = (draw(st.integers(1, 3)), channels, *per_dimension(1, 40))
    weight = (channels, 1, *per_dimension(1, 5))
    options = per_dimension(1, 4), per_dimension(0, 4), per_dimension(1, 3)
    assume(min(positions(shape[2:], weight[2:], *options)) > 0)
    return problem(shape, weight, *options, channels, draw(st.booleans()))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(windows())
def test_each_channel_by_itself(problems):
    check(convolution_depthwise, problems)


@pytest.mark.parametrize(
    "shape", [(2, 20, 150, 130), (1, 1, 1, 5000), (10, 33, 7, 7), (3, 16, 14, 14)], ids=str
)
@pytest.mark.parametrize("stride", [1, 2])
def test_bands_parts_and_blocks(shape, stride, threads):
    kernel = (min(3, shape[2]), 3)
    options = ((stride, stride), (1, 1) if shape[2] > 1 else (0, 1), (1, 1), shape[1])
    check(convolution_depthwise, problem(shape, (shape[1], 1, *kernel), *options))


def test_sums_do_not_depend_on_the_threads():
    arguments = problem((9, 40, 30, 30), (40, 1, 3, 3), (1, 1), (1, 1), (1, 1), 40)[2]
    found = []
    before = cpu_features.get_num_threads()
    for number in (1, 2, 4):
        cpu_features.set_num_threads(number)
        found.append(convolution_depthwise.convolution_weight(*arguments))
    cpu_features.set_num_threads(before)
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


def test_padding_takes_no_part():
    x = np.full((1, 16, 5, 20), np.inf, np.float32)
    w = np.ones((16, 1, 3, 3), np.float32)
    w[:, :, 0] = np.inf
    options = ((1, 1), (1, 1), (1, 1), 16)
    y = convolution_depthwise.convolution(x, w, None, *options)
    assert np.isposinf(y).all()
    back = convolution_depthwise.convolution_input(np.ones_like(x), w, (5, 20), *options)
    assert_allclose(back[:, :, -1, 1:-1], 6)
    weight = convolution_depthwise.convolution_weight(x, np.ones_like(x), (3, 3), *options)
    assert np.isposinf(weight).all()


@pytest.mark.parametrize(
    ("shape", "weight", "groups"),
    [
        ((2, 4, 5, 5), (8, 1, 3, 3), 4),  # two windows for each channel
        ((2, 4, 5, 5), (4, 2, 3, 3), 2),
        ((2, 4, 5, 5, 5), (4, 1, 3, 3, 3), 4),
        ((0, 4, 5, 5), (4, 1, 3, 3), 4),
        ((2, 4, 20, 20), (4, 1, 16, 3), 4),
    ],
    ids=str,
)
def test_others_are_declined(shape, weight, groups):
    ones, zeros = (1,) * len(shape[2:]), (0,) * len(shape[2:])
    w, x = numbers(*weight), numbers(*shape)
    assert convolution_depthwise.convolution(x, w, None, ones, zeros, ones, groups) is None
    double = numbers(2, 4, 5, 5).astype(np.float64)
    options = ((1, 1), (0, 0), (1, 1), 4)
    assert (
        convolution_depthwise.convolution(double, double[:1].reshape(4, 1, 5, 5), None, *options)
        is None
    )
    last = np.moveaxis(np.ascontiguousarray(np.moveaxis(numbers(2, 4, 5, 6), 1, -1)), -1, 1)
    assert convolution_depthwise.convolution(last, numbers(4, 1, 3, 3), None, *options) is None


@pytest.mark.parametrize(("bias", "outputs"), [(False, 7), (True, 7), (False, 3)])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("shape", [(2, 5, 12, 13), (1, 5, 43, 40), (3, 5, 800), (2, 5, 9, 9, 9)])
def test_single_places_are_products(shape, stride, bias, outputs, threads):
    convolutions = pytest.importorskip(
        "tensorplug_cpu_cython.convolution", reason="oneDNN is not installed", exc_type=ImportError
    )
    dims = len(shape) - 2
    options = ((stride,) * dims, (0,) * dims, (1,) * dims, 1)
    check(convolutions, problem(shape, (outputs, 5, *(1,) * dims), *options, bias))


def test_products_of_many_samples_are_added_up_in_parts():
    convolutions = pytest.importorskip(
        "tensorplug_cpu_cython.convolution", reason="oneDNN is not installed", exc_type=ImportError
    )
    shape, weight = (19, 260, 20, 20), (520, 260, 1, 1)
    check(convolutions, problem(shape, weight, (1, 1), (0, 0), (1, 1), 1)[2:], NAMES[2:])


@pytest.mark.parametrize("name", ["int64", "int32", "int16", "int8", "uint8"])
@pytest.mark.parametrize("size", [3, 100, 2**31])
def test_integers_wrap_around(size, name):
    """Whether or not double has all of the sums, they are those of integers that wrap around."""
    dtype = getattr(tp, name)
    rng = np.random.default_rng(0)
    low = 0 if name == "uint8" else -size
    for transposed, stride, groups in [(False, 1, 1), (False, 2, 2), (True, 1, 1), (True, 2, 1)]:
        x, w, b = (
            tp.tensor(rng.integers(low, size, s)).to(dtype)
            for s in ((2, 4, 6, 5), (4, 4 // groups, 3, 3), (4,))
        )
        op = tp.nn.functional.conv_transpose2d if transposed else tp.nn.functional.conv2d
        found = op(x, w, b, stride=stride, padding=1, groups=groups)
        with tp.prefer("cpu_numpy"):
            expected = op(x, w, b, stride=stride, padding=1, groups=groups)
        assert found.dtype is dtype
        assert tp.equal(found, expected)
        kernel = tp.explain("convolution", dtype=dtype).kernel
        assert kernel is not None
        assert kernel.plugin == "cpu_cython"
