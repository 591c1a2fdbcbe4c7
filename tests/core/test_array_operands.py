"""Tensors beside NumPy's arrays and scalars: operators, functions of NumPy, and arguments of ops."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorplug as tp

ARRAY = np.array([1, 5, 3])
OPERATORS = (
    "add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift eq ne lt le gt ge matmul"
)


@pytest.mark.parametrize("name", OPERATORS.split())
@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64])
def test_operators_with_arrays_are_those_of_numpy(name: str, dtype: Any) -> None:
    function = getattr(operator, name)
    x = tp.tensor([1, 2, 3])
    array = ARRAY.astype(dtype)
    for left, right in ((x, array), (array, x)):
        numbers = [np.asarray(side) for side in (left, right)]
        try:
            wanted = function(*numbers)
        except TypeError:
            with pytest.raises(TypeError):
                function(left, right)
            continue
        got = function(left, right)
        assert isinstance(got, tp.Tensor)
        assert got.numpy().dtype == wanted.dtype
        assert got.tolist() == wanted.tolist()


@pytest.mark.filterwarnings("ignore")
def test_operators_of_torch_with_arrays() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")
    names = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "eq", "matmul"]
    functions: list[Callable[[Any, Any], Any]] = [getattr(operator, name) for name in names]
    for function in functions:
        for array in (ARRAY, ARRAY.astype("f4"), ARRAY + 0.5):
            if function is operator.matmul and array.dtype == "f8":
                continue
            wanted = function(torch.tensor([1, 2, 3]), array)
            got = function(tp.tensor([1, 2, 3]), array)
            assert str(got.dtype).split(".")[1] == str(wanted.dtype).split(".")[1]
            assert got.tolist() == wanted.tolist()
    for name in ["sqrt", "sin", "exp", "abs", "isnan", "negative", "floor", "logical_not"]:
        wanted = getattr(np, name)(torch.tensor([1.0, 2.0]))
        got = getattr(np, name)(tp.tensor([1.0, 2.0]))
        assert isinstance(got, tp.Tensor)
        assert str(got.dtype).split(".")[1] == str(wanted.dtype).split(".")[1]
        assert got.tolist() == wanted.tolist()


def test_in_place_operators_with_arrays_make_a_new_tensor() -> None:
    x = y = tp.tensor([1.0, 2.0, 3.0])
    x += ARRAY
    assert x.tolist() == [2.0, 7.0, 6.0]
    assert (x.dtype, y.tolist()) == (tp.float64, [1.0, 2.0, 3.0])


def test_what_requires_grad_is_not_given_to_numpy() -> None:
    x = tp.ones(3, requires_grad=True)
    for call in (lambda: x * ARRAY, lambda: ARRAY * x, lambda: np.sqrt(x)):
        with pytest.raises(RuntimeError, match="requires grad"):
            call()
    assert (np.float64(2) * x).requires_grad
    assert (np.float32(2) * x).dtype is tp.float32


def test_scalars_of_numpy_are_numbers() -> None:
    x = tp.tensor([1.0, 2.0])
    two = np.int64(2)
    calls: list[tuple[Any, Any]] = [
        (tp.add(x, two), x + 2),
        (tp.add(x, x, alpha=two), x * 3),
        (x.clamp(max=np.float32(1.5)), x.clamp(max=1.5)),
        (x.clone().fill_(two), tp.full((2,), 2.0)),
        (tp.where(x > 1, two, x), tp.where(x > 1, 2, x)),
        (x.roll(np.int32(1)), x.roll(1)),
        (tp.float_power(x, two), x.double() ** 2),
        (x.masked_fill(x > 1, np.float64(7)), tp.tensor([1.0, 7.0])),
        (tp.lerp(x, x + 1, np.float64(0.5)), x + 0.5),
        (x.eq(two), x == 2),
        (x.sum(np.int64(0)), x.sum(0)),
        (x.split(np.int64(1))[0], x[:1]),
    ]
    for got, wanted in calls:
        assert got.dtype is wanted.dtype
        assert got.tolist() == wanted.tolist()


def test_equal_keys_of_calls_that_differ() -> None:
    z, mask = tp.zeros(1, dtype=tp.complex64), tp.tensor([True])
    signs = [
        tp.masked_fill(z, mask, value).imag.signbit().item()
        for value in (complex(-1, 0.0), complex(-1, -0.0), complex(-1, 0.0))
    ]
    assert signs == [False, True, False]
    x = tp.arange(4.0).reshape(2, 2)
    for _ in range(2):
        with pytest.raises(TypeError):
            x.roll((1.0, 1), (0, 1))  # type: ignore[arg-type]
        assert x.roll((1, 1), (0, 1)).tolist() == [[3.0, 2.0], [1.0, 0.0]]
