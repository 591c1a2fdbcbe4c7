"""Conversions to half precision from double, and to and from complex numbers of two halves."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp

pytest.importorskip("tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built")
from tensorplug_cpu_cython import pointwise

LAYOUTS = {
    "rows": lambda a: a,
    "transposed": np.asfortranarray,
    "every second": lambda a: np.repeat(a, 2, -1)[..., ::2],
}

#: Zeros of both signs, subnormal numbers, halfway between two halves and next to that, out of range.
EDGES = [0.0, -0.0, 2**-24, 1.5 * 2**-24, 2**-25, 1e-300, 65504.0, 65520.0, 1e300, np.inf, np.nan]


@pytest.mark.parametrize("step", [1, 2, -2, -1])
def test_double_to_half_rounds_once(step: int) -> None:
    rng = np.random.default_rng(0)
    halves = np.arange(65536, dtype=np.uint16).view(np.float16)
    halves = np.sort(halves[np.isfinite(halves)].astype(np.float64))
    middle = (halves[1:] + halves[:-1]) / 2
    some = rng.standard_normal(10_000) * 10.0 ** rng.uniform(-9, 6, 10_000)
    every = np.concatenate(
        [halves, middle, np.nextafter(middle, 9e9), np.nextafter(middle, -9e9), some, EDGES]
    )
    with np.errstate(over="ignore"):
        expected = every.astype(np.float16)
    # As bits: zeros have signs. Other NaN are NaN, too.
    found = pointwise.cast(np.repeat(every, abs(step))[::step], np.dtype(np.float16))
    found = found[::-1] if step < 0 else found
    same = (found.view(np.uint16) == expected.view(np.uint16)) | np.isnan(expected)
    assert same.all()
    assert np.isnan(found[np.isnan(expected)]).all()


WHOLE_AND_PARTS = ["float32", "float64", "float16", "bfloat16", "int64", "complex64", "complex128"]


@pytest.mark.parametrize("to", WHOLE_AND_PARTS)
@pytest.mark.parametrize("name", WHOLE_AND_PARTS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(), (7,), (3, 5), (2, 1, 9), (0, 3)], ids=str)
def test_complex_and_real_numbers(shape: tuple[int, ...], layout: str, name: str, to: str) -> None:
    rng = np.random.default_rng(0)
    array = rng.standard_normal(shape) * 9 + 1j * rng.standard_normal(shape)
    array = LAYOUTS[layout](array) if shape else array
    with tp.prefer("cpu_numpy"):
        given = tp.tensor(array).to(getattr(tp, name))
        expected = given.to(getattr(tp, to))
    found = given.to(getattr(tp, to))
    assert found.dtype is expected.dtype
    assert tp.equal(found, expected)


PAIRED = ["float16", "float32", "float64", "complex64", "complex128", "int32", "bool", "bfloat16"]


@pytest.mark.parametrize("name", PAIRED)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5), (2, 1, 9), (0, 3)], ids=str)
def test_pairs_of_halves(shape: tuple[int, ...], layout: str, name: str) -> None:
    rng = np.random.default_rng(0)
    array = rng.standard_normal(shape) * 9 + 1j * rng.standard_normal(shape)
    array = LAYOUTS[layout](array) if shape else array
    dtype = getattr(tp, name)
    with tp.prefer("cpu_numpy"):
        given = tp.tensor(array).to(dtype)
        pairs = given.to(tp.complex32)
        back = [pairs.to(getattr(tp, other)) for other in PAIRED if other != "int32"]
    found = given.to(tp.complex32)
    assert tp.equal(tp.view_as_real(found), tp.view_as_real(pairs))
    assert tp.equal(tp.view_as_real(found.clone()), tp.view_as_real(pairs))
    assert found.clone().data_ptr() != found.data_ptr() or not found.numel()
    for other, expected in zip([n for n in PAIRED if n != "int32"], back, strict=True):
        assert tp.equal(pairs.to(getattr(tp, other)), expected)
        if len(shape) > 1:
            assert tp.equal(pairs.mT.to(getattr(tp, other)), expected.mT)
