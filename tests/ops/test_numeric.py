"""Whole numbers: divisors and multiples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorplug as tp

TYPES = [np.int64, np.int32, np.int16, np.int8, np.uint8]


def pairs(dtype: Any, largest: int) -> Any:
    """Return random numbers and, before them, all pairs of those where sign and range end."""
    limits = np.iinfo(dtype)
    low, high = max(limits.min, -largest), min(limits.max, largest)
    ends = [limits.min, limits.min // 2, limits.min + 1, 0, 1, 6, limits.max]
    a, b = np.random.default_rng(0).integers(low, high, (2, 1000), dtype, endpoint=True)
    a[: len(ends) ** 2], b[: len(ends) ** 2] = [
        given.ravel() for given in np.meshgrid(np.array(ends, dtype), np.array(ends, dtype))
    ]
    return a, b


@pytest.mark.parametrize("largest", [100, 10**6, 2**33, 2**63])
@pytest.mark.parametrize("dtype", TYPES)
def test_gcd_and_lcm(dtype: Any, largest: int) -> None:
    """Both are NumPy's, which wrap around as well."""
    a, b = pairs(dtype, largest)
    for x, y in ((a, b), (a[::-3], b[::-3]), (a[:40, None], b[:33]), (a[0], b), (a[:0], b[:0])):
        first, second = tp.from_numpy(np.array(x)), tp.from_numpy(np.array(y))
        for name in ("gcd", "lcm"):
            with np.errstate(over="ignore"):
                expected = getattr(np, name)(x, y)
            found = getattr(tp, name)(first, second)
            assert found.dtype is first.dtype
            np.testing.assert_array_equal(found.numpy(), expected)
    strided = tp.from_numpy(a)[::2], tp.from_numpy(b)[1::2]
    np.testing.assert_array_equal(tp.gcd(*strided).numpy(), np.gcd(a[::2], b[1::2]))


def test_gcd_and_lcm_in_place_and_promoted() -> None:
    x = tp.tensor([12, -9, 0])
    assert x.clone().gcd_(tp.tensor(8)).tolist() == [4, 1, 8]
    assert x.clone().lcm_(tp.tensor([8, 6, 5])).tolist() == [24, 18, 0]
    found = tp.lcm(tp.tensor([100, 7], dtype=tp.int8), tp.tensor([3, 2000], dtype=tp.int16))
    assert found.dtype is tp.int16
    assert found.tolist() == [300, 14000]
    assert tp.func.vmap(tp.lcm, (0, None))(x, tp.tensor(4)).tolist() == [12, 36, 0]
    with pytest.raises(TypeError):
        tp.lcm(x, 3)


BEYOND = 2**63 + 5  # of uint64 alone


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda x: x + BEYOND, BEYOND + 1),
        (lambda x: x * BEYOND, BEYOND),
        (lambda x: x | BEYOND, BEYOND),
        (lambda x: x // BEYOND, 0),
        (lambda x: x % BEYOND, 1),
        (lambda x: x < BEYOND, True),
        (lambda x: x == BEYOND, False),
    ],
)
def test_ints_that_no_signed_dtype_has_beside_bool(call, expected):
    assert call(tp.tensor([True])).tolist() == [expected]


@pytest.mark.parametrize("right", [False, True])
def test_places_of_ints_beyond_all(right):
    assert tp.searchsorted(tp.tensor([1.0, 2.0]), 2**63, right=right).item() == 2
    assert tp.searchsorted(tp.tensor([1, 2]), 2**63, right=right).item() == 2
    assert tp.bucketize(2**64 - 1, tp.tensor([1, 2]), right=right).item() == 2
