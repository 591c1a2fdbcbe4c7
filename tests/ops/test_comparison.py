"""Comparisons, logical and bitwise ops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tensorplug as tp

torch: Any = pytest.importorskip("torch", reason="torch is the reference of these tests")

SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_special_values(name: str, dtype: str) -> None:
    a = tp.tensor(SPECIAL, dtype=getattr(tp, dtype))
    ta = torch.tensor(SPECIAL, dtype=getattr(torch, dtype))
    ours = getattr(tp, name)(a[:, None], a)
    assert ours.dtype is tp.bool
    assert ours.tolist() == getattr(torch, name)(ta[:, None], ta).tolist()


def test_numbers_are_converted_as_torch_does() -> None:
    assert (tp.tensor([44], dtype=tp.uint8) == 300).item()
    assert (tp.tensor([1, 2]) == 1.5).tolist() == [False, False]
    assert (tp.tensor([1, 2]) < 1.5).tolist() == [True, False]
    assert (tp.tensor([True]) == 1).item()
    assert (tp.tensor([16777217]) == tp.tensor([16777216.0])).item()


def test_long_names_are_the_same_ops() -> None:
    for short, long in {"ne": "not_equal", "lt": "less", "ge": "greater_equal"}.items():
        assert getattr(tp, short) is getattr(tp, long)
        assert getattr(tp.Tensor, short).op is getattr(tp.Tensor, long).op


def test_complex_numbers_have_no_order() -> None:
    with pytest.raises(NotImplementedError):
        tp.lt(tp.tensor([1j]), 1)
    assert tp.eq(tp.tensor([1 + 0j]), 1).item()


def test_comparison_in_place_writes_the_dtype_of_the_target() -> None:
    x = tp.tensor([1.0, 2.0])
    assert x.eq_(1) is x
    assert x.tolist() == [1.0, 0.0]
    assert x.logical_not_().tolist() == [0.0, 1.0]


def test_comparisons_do_not_require_grad() -> None:
    x = tp.ones(2, requires_grad=True)
    assert not (x > 0).requires_grad
    assert not tp.isnan(x).requires_grad


def test_infinite_complex_numbers() -> None:
    huge = tp.tensor([complex(1e38, 3e38), complex(math.inf, math.nan), complex(0, -math.inf)])
    assert tp.isinf(huge).tolist() == [False, True, True]
    assert tp.isfinite(huge).tolist() == [True, False, False]
    assert tp.isnan(huge).tolist() == [False, True, False]


@pytest.mark.parametrize("dtype", ["float32", "int64", "complex64", "bool"])
@pytest.mark.parametrize("options", [{}, {"rtol": 0.5}, {"atol": 2.0}, {"rtol": 0.0, "atol": 0.0}])
def test_isclose(dtype: str, options: dict[str, float]) -> None:
    a = np.random.default_rng(0).integers(-5, 5, 50)
    b = np.random.default_rng(1).integers(-5, 5, 50)
    ours = [tp.tensor(x.tolist()).to(getattr(tp, dtype)) for x in (a, b)]
    theirs = [torch.tensor(x.tolist()).to(getattr(torch, dtype)) for x in (a, b)]
    assert tp.isclose(*ours, **options).tolist() == torch.isclose(*theirs, **options).tolist()
    assert tp.allclose(*ours, **options) is torch.allclose(*theirs, **options)


def test_isclose_of_infinities_and_nan() -> None:
    a = tp.tensor(SPECIAL)
    assert tp.isclose(a, a).tolist() == [True] * 6 + [False]
    assert tp.isclose(a, a, equal_nan=True).all()
    assert not tp.isclose(tp.tensor([math.inf]), tp.tensor([1e30]), rtol=math.inf).item()


def test_equal() -> None:
    assert tp.equal(tp.tensor([1, 2]), tp.tensor([1.0, 2.0]))
    assert not tp.equal(tp.tensor([1, 2]), tp.tensor([[1, 2]]))
    assert not tp.equal(tp.tensor([math.nan]), tp.tensor([math.nan]))


@pytest.mark.parametrize("name", ["and", "or", "xor"])
@pytest.mark.parametrize("one", ["bool", "uint8", "int64"])
@pytest.mark.parametrize("other", ["bool", "uint8", "int64"])
def test_bitwise(name: str, one: str, other: str) -> None:
    values, others = [0, 1, 1, 0], [0, 0, 1, 1]
    ours = getattr(tp, f"bitwise_{name}")(
        tp.tensor(values, dtype=getattr(tp, one)), tp.tensor(others, dtype=getattr(tp, other))
    )
    theirs = getattr(torch, f"bitwise_{name}")(
        torch.tensor(values, dtype=getattr(torch, one)),
        torch.tensor(others, dtype=getattr(torch, other)),
    )
    assert str(ours.dtype)[11:] == str(theirs.dtype)[6:]
    assert ours.tolist() == theirs.tolist()


def test_bits_of_floating_point_numbers_are_refused() -> None:
    for function in (tp.bitwise_and, tp.bitwise_left_shift):
        with pytest.raises(NotImplementedError):
            function(tp.ones(2), tp.ones(2))
    with pytest.raises(NotImplementedError):
        ~tp.ones(2)
    with pytest.raises(NotImplementedError):
        tp.bitwise_left_shift(tp.tensor([True]), tp.tensor([True]))


def test_logical_ops_take_every_dtype() -> None:
    a = tp.tensor([0.0, math.nan, -1.0])
    b = tp.tensor([1j, 0j, 1j])
    assert tp.logical_and(a, b).tolist() == [False, False, True]
    assert tp.logical_or(a, b).tolist() == [True, True, True]
    assert tp.logical_xor(a, b).tolist() == [True, True, False]
    assert tp.logical_not(a).tolist() == [True, False, False]
    with pytest.raises(TypeError):
        tp.logical_and(a, 1)
