"""Clamp between bounds that are NaN, crossed or of other dtypes."""

from __future__ import annotations

import math

import tensorplug as tp

NAN = math.nan


def test_clamp() -> None:
    x = tp.tensor([-2.0, 0.5, 3.0, NAN])
    assert tp.clamp(x, -1, 1)[:3].tolist() == [-1.0, 0.5, 1.0]
    assert tp.clamp(x, -1, 1).isnan().tolist() == [False, False, False, True]
    assert tp.clamp(x, min=NAN).isnan().all()
    assert tp.clamp(tp.tensor([5.0]), 3, 1).tolist() == [1.0]
    assert tp.clamp(tp.tensor([1, 5]), 2.5).tolist() == [2.5, 5.0]
    assert tp.clamp(tp.tensor([1, 5]), 2, 3.5).tolist() == [2.0, 3.5]
    assert x.clip is not None
    assert tp.tensor([1.0, 9.0]).clamp_(max=2).tolist() == [1.0, 2.0]
