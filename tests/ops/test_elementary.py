"""Rounding."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp


def test_rounding_goes_to_even() -> None:
    halves = tp.tensor([0.5, 1.5, 2.5, -0.5, -1.5])
    assert tp.round(halves).tolist() == [0.0, 2.0, 2.0, -0.0, -2.0]
    assert tp.round(tp.tensor([15.0, 25.0]), decimals=-1).tolist() == [20.0, 20.0]
    with pytest.raises(NotImplementedError):
        tp.round(tp.tensor([15]), decimals=-1)


@pytest.mark.parametrize("decimals", [308, 309, 400, -308, -309, -400])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_decimals_beyond_powers_of_ten(decimals, dtype) -> None:
    torch = pytest.importorskip("torch")
    values = [1.5, 0.0, -2e10, float("inf")]
    found = tp.round(tp.tensor(values, dtype=getattr(tp, dtype)), decimals=decimals)
    expected = torch.round(torch.tensor(values, dtype=getattr(torch, dtype)), decimals=decimals)
    np.testing.assert_array_equal(found.tolist(), expected.tolist())
