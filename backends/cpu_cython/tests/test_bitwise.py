"""Shifts by any number of bits, also more than there are and fewer than none, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorplug as tp

pytest.importorskip("tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built")

TYPES = [np.int64, np.int32, np.int16, np.int8, np.uint8]


@pytest.mark.parametrize("name", ["bitwise_left_shift", "bitwise_right_shift"])
@pytest.mark.parametrize("dtype", TYPES)
def test_shifts(name: str, dtype: Any) -> None:
    limits = np.iinfo(dtype)
    ends = [limits.min, limits.min + 1, 0, 1, limits.max]
    numbers = np.random.default_rng(0).integers(limits.min, limits.max, 130, dtype, endpoint=True)
    numbers[: len(ends)] = ends
    bits = np.arange(-2 if limits.min else 0, 100).astype(dtype)[:, None]
    for a, b in ((numbers, bits), (numbers[::2], bits), (numbers[: len(bits), None], bits)):
        found = getattr(tp, name)(tp.from_numpy(a.copy()), tp.from_numpy(b)).numpy()
        np.testing.assert_array_equal(found, getattr(np, name)(a, b))
    for count in (0, 3, limits.bits - 1, limits.bits, 100):
        found = getattr(tp, name)(tp.from_numpy(numbers), count).numpy()
        np.testing.assert_array_equal(found, getattr(np, name)(numbers, dtype(count)))
