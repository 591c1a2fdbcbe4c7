"""Pointwise ops of many short rows, for which an input has one row, one number a row, or one for all."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tensorplug as tp

pytest.importorskip("tensorplug_cpu_cython.pointwise", reason="cpu_cython is not built")

SHAPES = [(40, 5), (17, 130), (3, 50, 7), (300, 2, 9), (2, 3, 40, 11), (16, 600)]


def numbers(shape: tuple[int, ...], kept: tuple[bool, ...], dtype: str, order: Any) -> Any:
    """Return numbers of a shape, with dimensions of size 1 where it is not kept."""
    sizes = [size if keep else 1 for size, keep in zip(shape, kept, strict=True)]
    generator = np.random.default_rng(sum(kept) + len(shape))
    return order(generator.integers(-50, 50, sizes).astype(dtype))


@pytest.mark.parametrize("order", [np.ascontiguousarray, np.asfortranarray])
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i8", "i4", "i1"])
def test_two_arrays(dtype: str, order: Any) -> None:
    for shape in SHAPES:
        for kept in itertools.product((False, True), repeat=len(shape)):
            x = numbers(shape, (True,) * len(shape), dtype, order)
            y = numbers(shape, kept, dtype, np.ascontiguousarray)
            for a, b in ((x, y), (y, x)):
                ours = tp.from_numpy(a), tp.from_numpy(b)
                np.testing.assert_array_equal(tp.maximum(*ours).numpy(), np.maximum(a, b))
                np.testing.assert_array_equal(tp.lt(*ours).numpy(), a < b)
            written = tp.from_numpy(x.copy(order="K"))
            written -= tp.from_numpy(y)
            np.testing.assert_array_equal(written.numpy(), x - y)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "i1"])
def test_three_arrays(dtype: str) -> None:
    for shape in SHAPES[:4]:
        layouts = [*itertools.product((False, True), repeat=len(shape))]
        for first, second in itertools.product(layouts, repeat=2):
            x = numbers(shape, (True,) * len(shape), dtype, np.ascontiguousarray)
            y = numbers(shape, first, dtype, np.ascontiguousarray)
            truth = numbers(shape, second, "i1", np.ascontiguousarray) > 0
            for a, b in ((x, y), (y, x)):
                found = tp.where(*map(tp.from_numpy, (truth, a, b))).numpy()
                np.testing.assert_array_equal(found, np.where(truth, a, b))
