"""Rounding."""

from __future__ import annotations

import pytest

import tensorplug as tp


def test_rounding_goes_to_even() -> None:
    halves = tp.tensor([0.5, 1.5, 2.5, -0.5, -1.5])
    assert tp.round(halves).tolist() == [0.0, 2.0, 2.0, -0.0, -2.0]
    assert tp.round(tp.tensor([15.0, 25.0]), decimals=-1).tolist() == [20.0, 20.0]
    with pytest.raises(NotImplementedError):
        tp.round(tp.tensor([15]), decimals=-1)
