"""Pixels and channels that are shuffled, in all layouts, against NumPy's views."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built")
from tensorplug_cpu_cython import strided

DTYPES = ["float32", "float64", "float16", "int64", "int32", "int16", "uint8", "bool"]
LAYOUTS: dict[str, Any] = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "every second": lambda a: np.repeat(a, 2, -1)[..., ::2],
    "backwards": lambda a: np.ascontiguousarray(a[..., ::-1, :])[..., ::-1, :],
    "channels last": lambda a: np.moveaxis(np.ascontiguousarray(np.moveaxis(a, -3, -1)), -1, -3),
    "one for all": lambda a: np.broadcast_to(a[..., :1, :, :], a.shape),
}


def numbers(shape: tuple[int, ...], dtype: str) -> Any:
    return np.random.default_rng(0).integers(0, 100, shape).astype(dtype)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("leading", [(), (2,), (3, 2), (0,)])
def test_pixels(leading: tuple[int, ...], dtype: str, layout: str) -> None:
    n = math.prod(leading)
    for r, count, h, w in ((1, 2, 3, 4), (2, 3, 5, 4), (3, 1, 2, 2), (2, 1, 0, 3)):
        x = LAYOUTS[layout](numbers((*leading, count * r * r, h, w), dtype))
        parts = x.reshape(n, count, r, r, h, w).transpose(0, 1, 4, 2, 5, 3)
        found = strided.pixel_shuffle(x, r)
        np.testing.assert_array_equal(found, parts.reshape(*leading, count, h * r, w * r))
        assert found.dtype == dtype
        assert found.flags.c_contiguous
        y = LAYOUTS[layout](numbers((*leading, count, h * r, w * r), dtype))
        parts = y.reshape(n, count, h, r, w, r).transpose(0, 1, 3, 5, 2, 4)
        found = strided.pixel_unshuffle(y, r)
        np.testing.assert_array_equal(found, parts.reshape(*leading, count * r * r, h, w))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_channels(dtype: str, layout: str) -> None:
    for groups, shape in (
        (1, (2, 3, 4, 5)),
        (2, (3, 6, 5, 4)),
        (3, (2, 6, 7)),
        (2, (1, 4, 2, 3, 4)),
    ):
        x = LAYOUTS[layout](numbers(shape, dtype))
        parts = x.reshape(shape[0], groups, shape[1] // groups, *shape[2:]).swapaxes(1, 2)
        found = strided.channel_shuffle(x, groups)
        np.testing.assert_array_equal(found, parts.reshape(shape))
        assert found.dtype == dtype
