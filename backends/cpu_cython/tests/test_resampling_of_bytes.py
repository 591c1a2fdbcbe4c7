"""Images of bytes resampled by whole numbers, against the op's body: every mode, larger and smaller."""

import itertools

import numpy as np
import pytest

import tensorplug as tp
import tensorplug.nn.functional as F

pytest.importorskip("tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built")

SHAPES = ((2, 3, 9, 11), (1, 4, 40, 33), (3, 1, 1, 70))
SIZES = ((9, 11), (5, 40), (41, 3), (1, 1), (17, 64))
MODES = [
    *[{"mode": mode} for mode in ("nearest", "nearest-exact")],
    *[
        {"mode": mode, "align_corners": align, "antialias": antialias}
        for mode in ("bilinear", "bicubic")
        for align, antialias in ((False, False), (True, False), (False, True))
    ],
]


def _bytes(shape):
    """Return bytes, among them many of the ends, where cubic filters overshoot."""
    drawn = np.random.default_rng(0).integers(-100, 356, shape)
    return tp.from_numpy(drawn.clip(0, 255).astype(np.uint8))


def _compare(x, **options):
    found = F.interpolate(x, **options)
    with tp.prefer("cpu_numpy"):
        expected = F.interpolate(x, **options)
    assert found.dtype is tp.uint8
    np.testing.assert_array_equal(found.numpy(), expected.numpy())


def test_the_kernel_is_found():
    kernel = tp.explain("interpolate", dtype=tp.uint8).kernel
    assert kernel is not None
    assert kernel.plugin == "cpu_cython"


@pytest.mark.parametrize("options", MODES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sizes(shape, options):
    for size in SIZES:
        _compare(_bytes(shape), size=size, **options)


@pytest.mark.parametrize("options", MODES, ids=str)
def test_factors(options):
    for factor in (0.3, 1.0, 1.7, (2.0, 0.5)):
        _compare(_bytes(SHAPES[0]), scale_factor=factor, **options)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_of_one_and_three_dimensions(mode):
    for (shape, sizes), size in itertools.product(
        [((2, 3, 9), (4, 9, 21)), ((2, 3, 5, 4, 6), (3, 7, 11))], range(3)
    ):
        _compare(_bytes(shape), size=sizes[size], mode=mode)


@pytest.mark.parametrize("threads", [1, 2])
def test_channels_last_and_threads(threads):
    x = _bytes((2, 3, 64, 80)).contiguous(memory_format=tp.channels_last)
    before = tp.get_num_threads()
    try:
        tp.set_num_threads(threads)
        _compare(x, size=(90, 33), mode="bicubic", antialias=True)
    finally:
        tp.set_num_threads(before)
