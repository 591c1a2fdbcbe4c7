"""Running sums, products and sums of exponentials."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("op", ["cumsum", "cumprod", "logcumsumexp"])
def test_errors_do_not_add_up(op: str, dtype: str) -> None:
    """Each result is right to about a unit in the last place, however long the row."""
    if (op, dtype) == ("logcumsumexp", "complex64"):
        pytest.skip("of complex numbers it is defined up to a period")
    rng = np.random.default_rng(0)
    array = rng.random(200_000) if op != "cumprod" else rng.uniform(0.9999, 1.0001, 200_000)
    array = array.astype(dtype)
    if dtype == "complex64":
        array *= np.exp(1e-3j * rng.random(array.size)).astype(dtype)
    wide = array.astype(np.result_type(array, np.float64))
    function = getattr(tp, op)
    for shape in ((-1,), (2, -1)):
        found = function(tp.tensor(array.reshape(shape)), -1).numpy()
        exact = function(tp.tensor(wide.reshape(shape)), -1).numpy()
        assert (np.abs(found - exact) / np.abs(exact)).max() < 3e-7


def test_sums_may_come_back_from_beyond_the_dtype() -> None:
    x = tp.tensor([3e38, 3e38, -3e38])
    assert tp.cumsum(x, 0).tolist() == [x[0].item(), float("inf"), x[0].item()]  # as torch's


@pytest.mark.parametrize("dtype", [tp.complex64, tp.complex128], ids=str)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_logarithms_of_complex_sums_are_nan_from_the_first_nan_on(
    place: int, dtype: tp.dtype
) -> None:
    for part in (complex(1, np.nan), complex(np.nan, 1), complex(np.inf, np.nan)):
        values = [0.5 + 1j, 1 - 1j, -2 + 0j]
        values[place] = part
        found = tp.logcumsumexp(tp.tensor(values, dtype=dtype), 0)
        for numbers in (found.real, found.imag):
            assert numbers.isnan().tolist() == [i >= place for i in range(3)]
