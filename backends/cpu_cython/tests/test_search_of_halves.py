"""Places of halves in sorted sequences, longer and shorter than what is searched for, beside float64."""

from __future__ import annotations

import pytest

import tensorplug as tp

SPECIAL = [0.0, -0.0, float("inf"), -float("inf"), float("nan"), 6e-8, -6e-8]


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("length", [0, 1, 2, 50, 700])
@pytest.mark.parametrize("rows", [None, 3])
@pytest.mark.parametrize("dtype", [tp.bfloat16, tp.float16], ids=str)
def test_places_of_halves(dtype, rows, length, right):
    tp.manual_seed(length)
    shape = () if rows is None else (rows,)
    values = (tp.randn(*shape, 30) * 2).to(dtype)
    values[..., : len(SPECIAL)] = tp.tensor(SPECIAL).to(dtype)
    sequence = (tp.randn(*shape, length) * 2).to(dtype)
    if length > len(SPECIAL):
        sequence[..., : len(SPECIAL)] = tp.tensor(SPECIAL).to(dtype)
    sequence = sequence.sort().values
    found = tp.searchsorted(sequence, values, right=right)
    expected = tp.searchsorted(sequence.double(), values.double(), right=right)
    assert found.tolist() == expected.tolist()
    if rows is None:
        assert tp.bucketize(values, sequence, right=right).tolist() == expected.tolist()
