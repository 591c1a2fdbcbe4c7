"""Sums of rows that are a few vectors long, around the sizes of vectors and of blocks of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorplug as tp

pytest.importorskip("tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built")

WIDTHS = [*range(1, 36), 63, 64, 65, 127, 128, 129]
ROWS = [15, 16, 17, 32, 100]


def laid_out(a: Any) -> dict[str, Any]:
    """Return the same numbers in several layouts, in each of which rows have no gaps."""
    gaps = np.zeros((*a.shape[:-1], a.shape[-1] + 3), a.dtype)
    gaps[..., 1:-2] = a
    return {
        "dense": a,
        "gaps": gaps[..., 1:-2],
        "permuted": np.ascontiguousarray(a.swapaxes(0, 1)).swapaxes(0, 1),
    }


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_values(dtype: str) -> None:
    rng = np.random.default_rng(0)
    for n in WIDTHS:
        for rows in ROWS:
            # Whole numbers, whose sums are exact in any order.
            a = rng.integers(-1000, 1000, (rows, 3, n)).astype(dtype)
            for name, array in laid_out(a).items():
                found = tp.from_numpy(array).sum(-1).numpy()
                np.testing.assert_array_equal(found, a.sum(-1), f"{n} {rows} {name}")
                if dtype != "int64":
                    mean = tp.from_numpy(array).mean(-1).numpy()
                    np.testing.assert_allclose(mean, a.astype(float).mean(-1), 1e-6, 1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("special", [np.nan, np.inf])
def test_special_numbers_stay_in_their_rows(special: float, dtype: str) -> None:
    for n in WIDTHS:
        a = np.ones((33, n), dtype)
        a[np.arange(33) % 2 == 1, np.arange(0, 33)[1::2] % n] = special
        found = tp.from_numpy(a).sum(-1).numpy()
        np.testing.assert_array_equal(found, np.where(np.arange(33) % 2 == 1, special, n))
