"""Runs of equal elements and rows: every dtype, layout and dimension, against the op's body."""

import itertools

import numpy as np
import pytest

import tensorplug as tp

pytest.importorskip("tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built")
from tensorplug_cpu_cython._dtypes import NUMBERED

SHAPES = ((), (0,), (1,), (50,), (0, 3), (4, 5), (3, 2, 6))
LAYOUTS = {
    "rows": lambda x: x,
    "transposed": lambda x: x.transpose(0, -1) if x.ndim else x,
    "every second": lambda x: x[..., ::2] if x.ndim else x,
    "backwards": lambda x: x.flip(0).contiguous() if x.ndim else x,
}


def _values(shape, dtype):
    """Return few distinct values, so that runs form; of floats among them both zeros and NaN."""
    drawn = np.random.default_rng(sum(shape)).integers(0, 2, shape)
    x = tp.from_numpy(np.asarray(drawn).astype(np.float32))
    if dtype.is_floating_point and x.ndim == 1 and x.numel() > 9:
        x[3:5] = float("nan")
        x[6], x[7] = 0.0, -0.0
    return x.to(dtype)


def _lists(result):
    return [part.double().numpy() for part in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.parametrize("dtype", NUMBERED, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_against_the_body(shape, layout, dtype):
    x = LAYOUTS[layout](_values(shape, dtype))
    kernel = tp.explain("unique_consecutive", dtype=dtype).kernel
    assert kernel is not None
    for inverse, counts, dim in itertools.product(
        (False, True), (False, True), (None, *range(-x.ndim, x.ndim))
    ):
        if dim is not None and 0 in [size for d, size in enumerate(x.shape) if d != dim % x.ndim]:
            continue  # slices without elements
        found = tp.unique_consecutive(x, inverse, counts, dim)
        with tp.prefer("cpu_numpy"):
            expected = tp.unique_consecutive(x, inverse, counts, dim)
        for mine, other in zip(_lists(found), _lists(expected), strict=True):
            np.testing.assert_array_equal(mine, other)
        first = found[0] if isinstance(found, tuple) else found
        assert first.dtype is dtype
        assert first.is_contiguous()
