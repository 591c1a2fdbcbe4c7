"""Clamp between bounds that are NaN, crossed or of other dtypes."""

from __future__ import annotations

import math

import pytest

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


@pytest.mark.parametrize("dtype", [tp.float16, tp.bfloat16, tp.float32])
def test_bounds_beyond_the_dtype_are_refused(dtype: tp.dtype) -> None:
    x = tp.ones(2, dtype=dtype)
    beyond = 1e300
    for min, max in (
        (beyond, None),
        (None, -beyond),
        (0.0, beyond),
        (-beyond, 0.0),
        (beyond, beyond),
    ):
        for _ in range(3):
            with pytest.raises(RuntimeError, match="without overflow"):
                tp.clamp(x, min, max)
            with pytest.raises(RuntimeError, match="without overflow"):
                x.clamp_(min, max)
    assert x.tolist() == [1.0, 1.0]
    assert tp.clamp(x, -tp.inf, tp.inf).tolist() == [1.0, 1.0]
