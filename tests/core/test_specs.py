"""Rules run once per kinds, shapes and plain values; what they came to must not stick to one call."""

from __future__ import annotations

import pytest

import tensorplug as tp


def test_one_tensor_given_twice_is_not_taken_for_two() -> None:
    a, b = tp.tensor([[1.0, 2.0], [3.0, 4.0]]), tp.tensor([[0.0, 1.0], [1.0, 0.0]])
    for _ in range(2):
        assert (a @ a).tolist() == [[7.0, 10.0], [15.0, 22.0]]
        assert (a @ b).tolist() == [[2.0, 1.0], [4.0, 3.0]]


def test_plain_values_of_other_types_are_checked_again() -> None:
    x = tp.ones(2, 2)
    assert x.sum(1).tolist() == [2.0, 2.0]
    with pytest.raises(TypeError):
        x.sum(1.0)


def test_the_default_dtype_counts() -> None:
    x = tp.tensor([4])
    assert (x.sqrt().dtype, x.exp().dtype) == (tp.float32, tp.float32)
    tp.set_default_dtype(tp.float64)
    try:
        assert (x.sqrt().dtype, x.exp().dtype) == (tp.float64, tp.float64)
    finally:
        tp.set_default_dtype(tp.float32)
    assert x.sqrt().dtype is tp.float32


def test_requires_grad_is_seen_each_time() -> None:
    x, y = tp.ones(3), tp.ones(3, requires_grad=True)
    for _ in range(2):
        assert not x.sum().requires_grad
        assert y.sum().requires_grad


def test_errors_come_each_time() -> None:
    for _ in range(2):
        with pytest.raises(IndexError, match="out of range"):
            tp.ones(2).sum(3)


def test_the_sign_of_zero_counts():
    x = tp.tensor([float("nan")])
    for value in (0.0, -0.0, 0.0):
        assert tp.nan_to_num(x, value).signbit().item() == (str(value) == "-0.0")
