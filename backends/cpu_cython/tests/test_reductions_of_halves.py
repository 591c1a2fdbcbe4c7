"""Reductions of half precision, which widen block by block: rounded once, over any dimensions."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tensorplug as tp

cpu_features = pytest.importorskip(
    "tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built"
)

UNITS = {tp.float16: 2.0**-10, tp.bfloat16: 2.0**-7}
# Around blocks of 16 rows, 256 and 1,024 columns and 2,048 elements, narrow rows, and what is copied first.
SHAPES = [
    (1,), (7,), (2047,), (5000,), (3, 5), (200, 3), (3, 2100), (2000, 2), (500, 8), (500, 9), (40, 300),
    (33, 27), (18, 1100), (7, 6, 5), (64, 33, 17), (2, 1025), (1025, 2, 3), (4, 4, 4, 4),
]  # fmt: skip


@pytest.fixture(params=[1, 3], autouse=True)
def threads(request: Any) -> Any:
    before = cpu_features.get_num_threads()
    cpu_features.set_num_threads(request.param)
    yield request.param
    cpu_features.set_num_threads(before)


def layouts(x: Any) -> Any:
    yield x
    if x.ndim > 1:
        yield x.transpose(0, -1)
        yield x[::2]


@pytest.mark.parametrize("half", UNITS, ids=str)
@pytest.mark.parametrize("op", ["sum", "mean", "amax", "amin", "nansum"])
def test_values_are_rounded_once(op: str, half: tp.DType) -> None:
    rng = np.random.default_rng(0)
    reduce = getattr(tp, op)
    for shape in SHAPES:
        whole = tp.tensor(rng.standard_normal(shape)).to(half)
        if op == "nansum":
            whole.view(-1)[:: max(1, whole.numel() // 5)] = float("nan")
        for x in layouts(whole):
            for k in range(1, x.ndim + 1):
                for dim in itertools.combinations(range(x.ndim), k):
                    found, exact = reduce(x, dim), reduce(x.double(), dim)
                    assert found.dtype is half
                    apart = (found.double() - exact).abs()
                    assert bool((apart <= exact.abs() * UNITS[half] * 0.51 + 2e-5).all())


@pytest.mark.parametrize("half", UNITS, ids=str)
def test_products_and_nan(half: tp.DType) -> None:
    rng = np.random.default_rng(0)
    for shape in SHAPES:
        x = tp.tensor(rng.uniform(0.9, 1.1, shape)).to(half)
        exact = x.double().prod(-1)
        if bool(exact.isfinite().all()):
            tp.testing.assert_close(x.prod(-1).double(), exact, rtol=UNITS[half], atol=1e-6)
        least, most = x.aminmax()
        assert least == x.double().amin()
        assert most == x.double().amax()
        x.view(-1)[0] = float("nan")
        assert all(bool(value.isnan()) for value in (x.sum(), x.amax(), x.amin(), *x.aminmax()))
