"""Running sums, products and logarithms of complex numbers, and products, beside NumPy with more digits."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tensorplug as tp

cpu_features = pytest.importorskip(
    "tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built"
)
from tensorplug_cpu_cython import cumulative, pointwise, strided  # noqa: E402

PRECISION = {"complex64": 2e-6, "complex128": 1e-12}
WIDER = {"complex64": np.complex128, "complex128": np.clongdouble}
LAYOUTS = {
    "rows": lambda a: a,
    "transposed": np.asfortranarray,
    "every second": lambda a: np.repeat(a, 2, -1)[..., ::2],
    "backwards": lambda a: a[::-1],
    "broadcast": lambda a: np.broadcast_to(a[:1], a.shape),
}
# Around what is computed beside each other, blocks of columns, runs, and what threads share.
SHAPES = [
    (1,), (5,), (33,), (700,), (40_000,), (3, 31), (65, 4), (9, 257), (3, 4, 5), (2, 3, 70),
    (3, 2, 5, 6), (0, 3), (3, 0),
]  # fmt: skip

pytestmark = pytest.mark.usefixtures("threads")


divide = pointwise.Binary("true_divide").call
logarithms = cumulative.complex_logcumsumexp(None)  # which leaves none of these to others


def on_the_circle(shape: tuple[int, ...], dtype: str) -> Any:
    return np.exp(1j * np.random.default_rng(0).uniform(0, 6.3, shape)).astype(dtype)


def close(found: Any, expected: Any, dtype: str) -> None:
    assert found.dtype == dtype
    assert found.shape == expected.shape
    # Products of many numbers of size one are off by about as many roundings of each.
    error = np.abs(found - expected) / np.maximum(1, np.abs(expected))
    assert error.max(initial=0) < PRECISION[dtype]


@pytest.mark.parametrize("dtype", PRECISION)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products(shape: tuple[int, ...], layout: str, dtype: str) -> None:
    if layout == "broadcast" and not shape[0]:
        pytest.skip("there is nothing to repeat")
    array = LAYOUTS[layout](on_the_circle(shape, dtype))
    wide = array.astype(WIDER[dtype])
    for dim in range(len(shape)):
        close(cumulative.cumprod(array, dim), wide.cumprod(dim), dtype)
        close(cumulative.cumsum(array, dim), wide.cumsum(dim), dtype)
    for count in range(len(shape) + 1):
        for dims in itertools.combinations(range(len(shape)), count):
            for keep in (False, True):
                expected = np.asarray(wide.prod(dims, keepdims=keep))
                close(np.asarray(cumulative.complex_prod(array, dims, keep)), expected, dtype)


@pytest.mark.parametrize(
    "op",
    [
        "prod",
        "cumsum",
        "cumprod",
        "logcumsumexp",
        "div",
        "add",
        "mul",
        "ne",
        "neg",
        "square",
        "where",
        "addcmul",
    ],
)
def test_they_are_in_use(op: str) -> None:
    for dtype in (tp.complex64, tp.complex128):
        kernel = tp.explain(op, dtype=dtype).kernel
        assert kernel is not None
        assert kernel.plugin == "cpu_cython"


@pytest.mark.parametrize("dtype", PRECISION)
@pytest.mark.parametrize("layout", ["rows", "transposed", "every second", "backwards"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_logarithms(shape: tuple[int, ...], layout: str, dtype: str) -> None:
    rng = np.random.default_rng(1)
    array = rng.standard_normal(shape) * 3 + 40j * rng.standard_normal(shape)
    array = LAYOUTS[layout](array.astype(dtype))
    wide = array.astype(WIDER[dtype])
    for dim in range(len(shape)):
        found = logarithms(array, dim)
        peak = wide.real.max(initial=0)
        sums = np.exp(wide - peak).cumsum(dim)
        expected = np.log(sums) + peak
        turns = (found - expected).imag / (2 * np.pi)
        # What cancels leaves few digits.
        digits = PRECISION[dtype] / np.minimum(1, np.abs(sums))
        assert np.all(np.abs((found - expected).real) < 2 * digits)
        assert np.all(np.abs(turns - np.rint(turns)) < 4 * digits)


def test_the_branch_of_logarithms() -> None:
    # As of log(exp(a) + exp(b)) one after the other: beside the imaginary part of the larger term.
    array = np.array([1 + 9j, 0.5 + 8j, 3 + 30j, 2 + 29j, -5 - 7j])
    expected = [array[0]]
    for term in array[1:]:
        low, high = sorted((expected[-1], term), key=lambda number: number.real)
        expected.append(high + np.log1p(np.exp(low - high)))
    found = tp.tensor(array).logcumsumexp(0).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("dtype", PRECISION)
def test_what_is_not_finite_or_huge(dtype: str) -> None:
    for first in (np.inf, -np.inf, np.nan, complex(0, np.inf), complex(np.nan, 1), 1e20j, -0.0):
        array = np.array([first, 1 + 2j, 0.5j], dtype)
        tensor = tp.from_numpy(array)
        with tp.prefer("cpu_numpy"):
            sums, products = tensor.cumsum(0), tensor.cumprod(0)
            logs = tensor.logcumsumexp(0)
        np.testing.assert_array_equal(tensor.cumsum(0).numpy(), sums.numpy())
        np.testing.assert_array_equal(tensor.cumprod(0).numpy(), products.numpy())
        np.testing.assert_allclose(tensor.logcumsumexp(0).numpy(), logs.numpy(), 1e-6)


@pytest.mark.parametrize("dtype", PRECISION)
def test_quotients_of_special_numbers(dtype: str) -> None:
    parts = [0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan, 1e-15, 1e15]
    every = np.array([complex(a, b) for a in parts for b in parts]).astype(dtype)
    a, b = np.repeat(every, len(every)), np.tile(every, len(every))
    with np.errstate(all="ignore"):
        expected = np.true_divide(a, b)
        found = divide(a, b)
        near = np.abs(found - expected) <= PRECISION[dtype] * np.abs(expected)
    for one, other in ((found.real, expected.real), (found.imag, expected.imag)):
        assert np.all((one == other) | (np.isnan(one) & np.isnan(other)) | near)


@pytest.mark.parametrize("dtype", PRECISION)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [*SHAPES, ()], ids=str)
def test_quotients(shape: tuple[int, ...], layout: str, dtype: str) -> None:
    if layout in ("backwards", "broadcast", "every second") and 0 in (*shape, len(shape)):
        pytest.skip("there is nothing to turn or to repeat")
    rng = np.random.default_rng(2)
    a, b = ((rng.standard_normal(shape) + 1j * rng.standard_normal(shape)) for _ in range(2))
    a, b = (LAYOUTS[layout](np.asarray(one, dtype)) for one in (a, b))
    one = np.asarray(1, dtype)
    for x, y in (
        (a, b),
        (a, a.reshape(-1)[:1].sum()),
        (one, b),
        (b, one),
        (a, b[:1] if shape else b),
    ):
        x, y = np.asarray(x), np.asarray(y)
        if x.shape != y.shape and 0 in shape:
            continue
        wide = x.astype(WIDER[dtype]) / y.astype(WIDER[dtype])
        found = divide(x, y)
        close(np.asarray(found), wide, dtype)
        out = np.empty(found.shape, dtype)
        assert divide(x, y, out) is out
        np.testing.assert_array_equal(out, found)
    written = np.ascontiguousarray(a).copy()  # over what is divided
    expected = divide(written.copy(), np.ascontiguousarray(b))
    if written.ndim:
        divide(written, np.ascontiguousarray(b), written)
        np.testing.assert_array_equal(written, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("real", LAYOUTS)
@pytest.mark.parametrize("imag", LAYOUTS)
def test_pairs_of_parts(real: str, imag: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    for shape in SHAPES:
        a, b = (
            LAYOUTS[layout](rng.standard_normal(shape).astype(dtype)) for layout in (real, imag)
        )
        found = strided.complex_of(a, b)
        np.testing.assert_array_equal(found, a + 1j * b)
    row, number = rng.standard_normal(5).astype(dtype), np.asarray(2, dtype)
    for x, y in ((row, number), (number, row), (number, number), (row[:, None], row)):
        found = strided.complex_of(x, y)
        np.testing.assert_array_equal(found, x + 1j * y)


# Shapes of the real and of the imaginary part: of one shape, repeated before, within and behind.
PARTS = [
    ((), ()), ((1,), (5,)), ((5,), ()), ((3, 4), (3, 4)), ((40_000, 3), (3,)), ((10, 5), (200, 10, 5)),
    ((70, 1), (70, 900)), ((4, 1, 5), (3, 1)), ((2, 1, 3, 1), (1, 6, 1, 7)), ((0, 3), (3,)), ((1, 3), (0, 1)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "broadcast"])
@pytest.mark.parametrize(("real", "imag"), PARTS, ids=str)
def test_parts_that_broadcast(
    real: tuple[int, ...], imag: tuple[int, ...], layout: str, dtype: str
) -> None:
    draw = np.random.default_rng(0)
    parts = [draw.standard_normal(shape).astype(dtype) for shape in (real, imag)]
    shown = [LAYOUTS[layout](part) if part.ndim else part for part in parts]
    expected: Any = np.empty(np.broadcast_shapes(real, imag), np.result_type(dtype, np.complex64))
    expected.real, expected.imag = parts if layout != "backwards" else shown
    found = strided.complex_of(*shown)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
