"""Bags of rows of half precision, of which only those that are named are converted, beside float64."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp

PADDINGS = (None, 3, -1)
SIZES = [(50, 7, 6), (50, 40, 30), (4, 3, 9), (50, 7, 0)]  # rows, features, indices


@pytest.mark.parametrize("mode", ["sum", "mean", "max", "weighted"])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("dtype", [tp.bfloat16, tp.float16], ids=str)
def test_bags_of_halves(dtype, sizes, padding, mode):
    rows, features, count = sizes
    tp.manual_seed(0)
    weight = tp.randn(rows, features).to(dtype)
    indices = tp.randint(0, min(rows, 6), (count,))
    factors = tp.randn(count).to(dtype) if mode == "weighted" else None
    kind = "sum" if mode == "weighted" else mode
    offsets = tp.tensor([0, count // 3, count // 3])  # the second bag is empty

    def bags(in_dtype):
        return tp.nn.functional.embedding_bag(
            indices,
            weight.to(in_dtype),
            offsets,
            mode=kind,
            padding_idx=padding,
            per_sample_weights=None if factors is None else factors.to(in_dtype),
        )

    found, expected = bags(dtype), bags(tp.float64)
    assert found.dtype is dtype
    error = np.abs(found.double().numpy() - expected.numpy()).max(initial=0.0)
    assert error <= tp.finfo(dtype).eps * max(1.0, float(expected.abs().max()) if count else 0.0)


@pytest.mark.parametrize("wrong", [50, -1])
def test_rows_that_there_are_not(wrong):
    weight = tp.zeros(50, 3, dtype=tp.float16)
    with pytest.raises(RuntimeError, match=f"embedding_bag: .*{wrong}, of 50 rows"):
        tp.nn.functional.embedding_bag(tp.tensor([1, wrong]), weight, tp.tensor([0]))
