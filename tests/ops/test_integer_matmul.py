"""Products of integers, which go through floating-point numbers where these hold all results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorplug as tp

SHAPES = [
    ((40, 30), (30, 20)),
    ((3, 40, 30), (30, 20)),
    ((3, 40, 30), (3, 30, 20)),
    ((40,), (40, 60)),
    ((60, 40), (40,)),
    ((2, 1, 20, 30), (3, 30, 20)),
    ((3, 4), (4, 2)),
]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_against_numpy(dtype: str) -> None:
    rng = np.random.default_rng(0)
    info = np.iinfo(dtype)
    least, most = int(info.min), int(info.max)
    ranges = [(least, most), (0, min(most, 5)), (most - 3, most)]
    ranges += [(max(least, -(1 << 24)), min(most, 1 << 24)), (least, min(least + 3, most))]
    for low, high in ranges:
        for first, second in SHAPES:
            a: Any = rng.integers(low, high, first, dtype, endpoint=True)
            b: Any = rng.integers(low, high, second, dtype, endpoint=True)
            result = (tp.from_numpy(a) @ tp.from_numpy(b)).numpy()
            np.testing.assert_array_equal(result, np.matmul(a, b), f"{low} to {high}, {first}")
            assert result.dtype == a.dtype


def test_sums_that_just_fit_and_just_do_not() -> None:
    for bound in (1 << 26, (1 << 26) + 1):  # 2 * 2**52 is the last sum that float64 has for certain
        a = np.full((64, 2), bound, np.int64)
        b = np.full((2, 64), bound + 1, np.int64)
        np.testing.assert_array_equal((tp.from_numpy(a) @ tp.from_numpy(b)).numpy(), a @ b)
