"""Pointwise kernels of short rows in every layout, of which the loops get many at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built")
from tensorplug_cpu_cython import pointwise

# Rows about as long as the limits, fewer and more than a block holds, short ones inside and outside.
SHAPES = [
    (2000, 5),
    (5, 2000),
    (300, 10, 5),
    (3, 400, 2, 7),
    (150, 1, 17),
    (40, 3, 16, 2),
    (9, 511),
    (9, 513),
    (2048, 2),
    (31, 33),
    (4, 3, 5, 2, 20),
    (3, 1, 700, 4),
    (10, 6, 5),
    (3, 7, 4, 4),
]
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda a: a,
    "columns": np.asfortranarray,
    "turned": lambda a: np.ascontiguousarray(a.swapaxes(0, -1)).swapaxes(0, -1),
    "every second": lambda a: np.repeat(a, 2, -1)[..., ::2],
    "backwards": lambda a: a[::-1, ..., ::-1],
    "gaps": lambda a: np.concatenate([a, a], 1)[:, : a.shape[1]],
    "a row": lambda a: a[:1],
    "a column": lambda a: a[..., :1],
    "a plane": lambda a: a[0],
    "inner ones": lambda a: a[:, :1],
    "a number": lambda a: a[(0,) * a.ndim].reshape(()),
}
DTYPES = ["float32", "float64", "int8", "int16", "int64", "float16"]
add = pointwise.Binary("add", np.add)


@pytest.fixture(params=SHAPES, ids=str)
def given(request: pytest.FixtureRequest) -> Any:
    generator = np.random.default_rng(sum(request.param))
    return lambda dtype: generator.integers(0, 60, request.param).astype(dtype)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_two_arrays(given: Any, layout: str) -> None:
    for other, dtype in zip(LAYOUTS, DTYPES * 2, strict=False):
        a, b = LAYOUTS[layout](given(dtype)), LAYOUTS[other](given(dtype))
        expected = np.asarray(a + b)
        np.testing.assert_array_equal(add.call(a, b), expected)
        for place in ("rows", "columns", "every second", "gaps"):
            if expected.ndim < 2:
                continue
            out = LAYOUTS[place](np.zeros_like(expected, order="C"))
            assert add.call(a, b, out=out) is out
            np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_choices_and_copies(given: Any, layout: str) -> None:
    for other, dtype in zip(LAYOUTS, DTYPES * 2, strict=False):
        a, b, condition = given(dtype), LAYOUTS[layout](given(dtype)), LAYOUTS[other](given("?"))
        np.testing.assert_array_equal(pointwise.choose(condition, a, b), np.where(condition, a, b))
        copied = pointwise.clone(b)
        assert copied.flags.c_contiguous
        np.testing.assert_array_equal(copied, b)
        np.testing.assert_array_equal(pointwise.cast(b, np.dtype("float32")), b.astype("float32"))


@pytest.mark.parametrize("dtype", ["float32", "int32", "float64", "int8"])
@pytest.mark.parametrize("channels", [2, 3, 4, 5])
def test_images_channels_last_and_back(channels: int, dtype: str) -> None:
    """Copies of images whose channels come to lie beside each other, and apart; whole ones and parts."""
    generator = np.random.default_rng(channels)
    for height, width in ((1, 15), (1, 16), (5, 7), (31, 33), (100, 3)):
        image = generator.integers(0, 100, (3, channels, height + 2, width + 2)).astype(dtype)
        last = np.ascontiguousarray(image.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
        inner = (..., slice(1, -1), slice(1, -1))
        for given in (image, last, image[inner], last[inner], image[:, ::-1], last[:, ::-1]):
            for like in (image, last, image[:, :, :-2, :-2], last[:, :, :-2, :-2]):
                if like.shape == given.shape:
                    out = np.zeros_like(like)
                    pointwise.copy(out, given, out)
                    np.testing.assert_array_equal(out, given)
