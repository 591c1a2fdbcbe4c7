"""Samples of images at positions of a grid, of several samples in one block and by themselves."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

cpu_features = pytest.importorskip(
    "tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built"
)
import tensorplug as tp  # noqa: E402
from tensorplug_cpu_cython import vision  # noqa: E402
from tensorplug_cpu_cython._dtypes import ELEMENTS  # noqa: E402

# Batch, channels, image and positions. A block has 64 positions.
SHAPES = [
    (200, 1, (3, 4), (1, 1)),
    (130, 3, (3, 4), (1, 1)),
    (20, 2, (5, 3), (5, 5)),
    (3, 2, (5, 3), (8, 8)),
    (3, 2, (5, 3), (5, 13)),
    (2, 3, (1, 1), (10, 20)),
    (200, 2, (2, 3, 2), (1, 1, 1)),
    (5, 1, (2, 3, 2), (3, 7, 4)),
    (0, 2, (3, 4), (2, 2)),
    (2, 0, (3, 4), (2, 2)),
    (3, 2, (3, 4), (0, 2)),
]
MODES = ("bilinear", "nearest", "bicubic")


@pytest.fixture(params=[1, 3], ids=lambda n: f"{n} threads", autouse=True)
def threads(request):
    before = cpu_features.get_num_threads()
    cpu_features.set_num_threads(request.param)
    yield
    cpu_features.set_num_threads(before)


def by_themselves(gradient, image, grid, options):
    """Return samples and both gradients, of one sample and one row of positions at a time."""
    result, of_image, of_grid = (np.zeros_like(a) for a in (gradient, image, grid))
    for n, i in product(range(grid.shape[0]), range(grid.shape[1])):
        one, row = slice(n, n + 1), slice(i, i + 1)
        places = grid[one, row]
        result[one, :, row] = vision.grid_sample(image[one], places, *options)
        added, of_grid[one, row] = vision.grid_sampler_backward(
            gradient[one, :, row], image[one], places, *options
        )
        of_image[one] += added
    return result, of_image, of_grid


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("batch", "channels", "size", "where"), SHAPES)
def test_blocks_of_several_samples(batch, channels, size, where, dtype):
    drawn = np.random.default_rng(batch + channels)
    image = drawn.uniform(-1, 1, (batch, channels, *size)).astype(dtype)
    grid = drawn.uniform(-1.6, 1.6, (batch, *where, len(size))).astype(dtype)
    gradient = drawn.uniform(-1, 1, (batch, channels, *where)).astype(dtype)
    for mode, padding, align in product(MODES, ("zeros", "border", "reflection"), (False, True)):
        if mode == "bicubic" and len(size) == 3:
            continue
        options = (mode, padding, align)
        found = (
            vision.grid_sample(image, grid, *options),
            *vision.grid_sampler_backward(gradient, image, grid, *options),
        )
        expected = by_themselves(gradient, image, grid, options)
        for one, other in zip(found, expected, strict=True):
            assert one.dtype == dtype
            assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_nan_of_one_sample_stays_there():
    image = np.ones((70, 1, 2, 2), np.float32)
    image[::2] = np.nan
    places = np.zeros((70, 1, 1, 2), np.float32)
    found = vision.grid_sample(image, places, "bilinear", "zeros", False)
    assert np.isnan(found[::2]).all()
    assert (found[1::2] == 1).all()


@pytest.mark.parametrize("dtype", ELEMENTS, ids=str)
@pytest.mark.parametrize(
    "options", [(2, 1, 0, 1), (3, 2, 2, 2), ((1, 2), (2, 1), (0, 1), (1, 3))], ids=str
)
def test_windows_of_every_dtype(dtype, options):
    x = tp.randint(0, 9, (2, 3, 6, 7)).to(dtype)
    found = tp.nn.functional.unfold(x, *options)
    with tp.prefer("cpu_numpy"):
        expected = tp.nn.functional.unfold(x, *options)
    assert found.dtype == dtype
    assert found.stride() == expected.stride()
    assert found.tolist() == expected.tolist()
