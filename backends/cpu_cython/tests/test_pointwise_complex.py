"""Pointwise ops of complex numbers beside NumPy's with more digits, over layouts; copies and conversions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorplug as tp

pytest.importorskip("tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built")
from tensorplug_cpu_cython import pointwise
from tensorplug_cpu_cython.pointwise_fused import Fused

PRECISION = {"complex64": 3e-7, "complex128": 6e-16}
WIDER = {"complex64": np.complex128, "complex128": np.clongdouble}
LAYOUTS = {
    "rows": lambda a: a,
    "transposed": np.asfortranarray,
    "every second": lambda a: np.repeat(a, 2, -1)[..., ::2],
    "backwards": lambda a: a[::-1],
    "one": lambda a: a.reshape(-1)[:1].reshape(()),
    "row": lambda a: a[:1],
    "column": lambda a: a[..., :1],
}
SHAPES = [(1,), (3,), (16,), (37,), (70, 90), (3, 400), (5, 7, 11), (9000,)]
BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "true_divide": np.true_divide,
    "eq": np.equal,
    "ne": np.not_equal,
}
UNARY = {"neg": np.negative, "square": np.square, "clone": np.positive}

pytestmark = pytest.mark.usefixtures("threads")


def numbers(shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return (rng.integers(-4, 5, shape) / 2 + 1j * rng.standard_normal(shape)).astype(dtype)


def close(found: Any, expected: Any, scale: Any, dtype: str) -> None:
    assert found.shape == expected.shape
    if expected.dtype == bool:
        np.testing.assert_array_equal(found, expected)
        return
    assert found.dtype == dtype
    assert np.all(np.abs(found - expected) <= PRECISION[dtype] * scale)


@pytest.mark.parametrize("dtype", PRECISION)
@pytest.mark.parametrize("second", LAYOUTS)
@pytest.mark.parametrize("first", LAYOUTS)
@pytest.mark.parametrize("name", BINARY)
def test_of_two(name: str, first: str, second: str, dtype: str) -> None:
    call = pointwise.Binary(name).call
    for shape in SHAPES:
        x, y = LAYOUTS[first](numbers(shape, dtype, 0)), LAYOUTS[second](numbers(shape, dtype, 1))
        wide = [a.astype(WIDER[dtype]) for a in (x, y)]
        expected = np.asarray(BINARY[name](*wide))
        scale = np.abs(expected)
        if name in ("add", "sub"):
            scale = np.abs(wide[0]) + np.abs(wide[1])
        found = call(x, y)
        close(found, expected, scale, dtype)
        out = np.empty(found.shape, found.dtype)
        assert call(x, y, out) is out
        close(out, expected, scale, dtype)


@pytest.mark.parametrize("dtype", PRECISION)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", UNARY)
def test_of_one(name: str, layout: str, dtype: str) -> None:
    for shape in SHAPES:
        x = LAYOUTS[layout](numbers(shape, dtype, 0))
        expected = np.asarray(UNARY[name](x.astype(WIDER[dtype])))
        close(pointwise.Unary(name).call(x), expected, np.abs(expected), dtype)


@pytest.mark.parametrize("dtype", PRECISION)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("factor", [2.0, 0.5 - 3j])
def test_scaled_sums_and_products(factor: complex, layout: str, dtype: str) -> None:
    factor = complex(factor)
    for shape in SHAPES:
        x, z = numbers(shape, dtype, 0), numbers(shape, dtype, 2)
        y = np.broadcast_to(LAYOUTS[layout](numbers(shape, dtype, 1)), shape)
        a, b, c = (one.astype(WIDER[dtype]) for one in (x, y, z))
        found = Fused("add_scaled").call((x, y), (factor.real, factor.imag))
        close(found, a + factor * b, 3 * (np.abs(a) + np.abs(factor * b)), dtype)
        found = Fused("addcmul").call((x, y, z), (factor.real, factor.imag))
        close(found, a + factor * b * c, 3 * (np.abs(a) + np.abs(factor * b * c)), dtype)


@pytest.mark.parametrize("dtype", PRECISION)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_interpolations(layout: str, dtype: str) -> None:
    for shape in SHAPES:
        x, z = numbers(shape, dtype, 0), numbers(shape, dtype, 2)
        y = np.broadcast_to(LAYOUTS[layout](numbers(shape, dtype, 1)), shape)
        a, b, c = (one.astype(WIDER[dtype]) for one in (x, y, z))
        scale = 3 * (np.abs(a) + np.abs(b)) * (1 + np.abs(c))
        close(Fused("lerp_tensor").call((x, y, z), ()), a + c * (b - a), scale, dtype)
        for weight in (0.25 - 0.5j, 2.0, -3j):
            found = tp.lerp(tp.tensor(x), tp.tensor(y.copy()), weight).numpy()
            close(found, a + weight * (b - a), 10 * (np.abs(a) + np.abs(b)), dtype)


@pytest.mark.parametrize("dtype", PRECISION)
def test_special_numbers(dtype: str) -> None:
    parts = [0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan, 2.0**-100]
    every = np.array([complex(a, b) for a in parts for b in parts]).astype(dtype)
    x, y = np.repeat(every, len(every)), np.tile(every, len(every))
    for name in ("add", "sub", "eq", "ne"):
        with np.errstate(all="ignore"):
            expected = BINARY[name](x, y)
        np.testing.assert_array_equal(pointwise.Binary(name).call(x, y), expected)
    with np.errstate(all="ignore"):
        real = x.real * y.real - x.imag * y.imag
        imag = x.real * y.imag + x.imag * y.real
    found = pointwise.Binary("mul").call(x, y)
    for one, other in ((found.real, real), (found.imag, imag)):
        np.testing.assert_array_equal(one, other)
    signs = pointwise.Unary("neg").call(every)
    np.testing.assert_array_equal(np.signbit(signs.real), ~np.signbit(every.real))
    np.testing.assert_array_equal(np.signbit(signs.imag), ~np.signbit(every.imag))


@pytest.mark.parametrize("dtype", PRECISION)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_choices_copies_and_filled_arrays(layout: str, dtype: str) -> None:
    for shape in SHAPES:
        x, y = LAYOUTS[layout](numbers(shape, dtype, 0)), numbers(shape, dtype, 1)
        mask = np.random.default_rng(2).random(shape) < 0.5
        np.testing.assert_array_equal(pointwise.choose(mask, x, y), np.where(mask, x, y))
        np.testing.assert_array_equal(pointwise.choose(mask, y, x), np.where(mask, y, x))
        out = np.zeros(shape, dtype)
        pointwise.copy(out, x, out)
        np.testing.assert_array_equal(out, np.broadcast_to(x, shape))
        for value in (0, 1, 2.5, -1.5j, 3 - 2j):
            filled = pointwise.fill_new(shape, value, np.dtype(dtype))
            np.testing.assert_array_equal(filled, np.full(shape, value, dtype))


REAL = ["float32", "float64", "int64", "int32", "int16", "int8", "uint8", "bool"]


@pytest.mark.parametrize("dtype", PRECISION)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("other", [*REAL, *PRECISION])
def test_conversions(other: str, layout: str, dtype: str) -> None:
    to = np.dtype(other)
    for shape in SHAPES:
        x = LAYOUTS[layout](numbers(shape, dtype, 0))
        seen = x if to.kind in "cb" else x.real if to.kind != "u" else np.abs(x.real)
        if to.kind == "u":
            x = np.abs(x.real) + 1j * x.imag
            x = x.astype(dtype)
        np.testing.assert_array_equal(pointwise.cast(x, to), seen.astype(to))
        back = seen.astype(to)
        np.testing.assert_array_equal(pointwise.cast(back, np.dtype(dtype)), back.astype(dtype))


def test_gradients_flow_through_them() -> None:
    x = tp.randn(3, 4, dtype=tp.complex128, requires_grad=True)
    y = tp.randn(4, dtype=tp.complex128, requires_grad=True)
    assert tp.autograd.gradcheck(
        lambda a, b: (a * b - b.square()) / (a + 3) + tp.addcmul(a, a, b), (x, y)
    )
