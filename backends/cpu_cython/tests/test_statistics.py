"""Variances and norms of rows and columns of all lengths, against NumPy in more digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorplug as tp

pytest.importorskip("tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built")
from tensorplug_cpu_cython import statistics
from tensorplug_cpu_cython.kernels import norms

KINDS: dict[int, Any] = {
    statistics.VARIANCE: lambda x, axis: x.var(axis, ddof=1),
    statistics.DEVIATION: lambda x, axis: x.std(axis, ddof=1),
    statistics.NORM1: lambda x, axis: np.abs(x).sum(axis),
    statistics.NORM2: lambda x, axis: np.sqrt((x * x).sum(axis)),
}
LAYOUTS: dict[str, Any] = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "every second": lambda a: np.repeat(a, 2, -1)[..., ::2],
    "backwards": lambda a: np.ascontiguousarray(a[::-1])[::-1],
}


# Rows that are turned, the first that are not, and numbers of rows around a block of them.
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("length", [2, 3, 5, 15, 16, 17, 40])
def test_rows_and_columns(kind: int, layout: str, dtype: Any, length: int, threads: int) -> None:
    rng = np.random.default_rng(length)
    for count in (1, 2, 63, 64, 65, 1000):
        x = LAYOUTS[layout]((100 + rng.standard_normal((count, length))).astype(dtype))
        exact = x.astype(np.longdouble)
        for axis in (0, 1):
            if x.shape[axis] == 1:
                continue
            found = statistics.reduce(x, kind, (axis,), 1.0, False)
            assert found.dtype == dtype
            expected = KINDS[kind](exact, axis).astype(dtype)
            np.testing.assert_allclose(found, expected, 2e-5 if dtype == np.float32 else 1e-12)
            kept = statistics.reduce(x, kind, (axis,), 1.0, True)
            np.testing.assert_array_equal(kept, np.expand_dims(found, axis))


@pytest.mark.parametrize("kind", KINDS)
def test_short_rows_of_what_is_no_number(kind: int) -> None:
    """A row has no effect on those beside it."""
    x = np.ones((130, 5), np.float32)
    x[3, 2], x[64, 0], x[129, 4] = np.nan, np.inf, -np.inf
    with np.errstate(all="ignore"):
        expected = KINDS[kind](x.astype(np.float64), 1)
    np.testing.assert_allclose(statistics.reduce(x, kind, (1,), 1.0, False), expected, 1e-6)


@pytest.mark.parametrize("order", [-np.inf, -3.5, -1.0, 0.5, 1.0, 2.0, 3.0, np.inf])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("shape", "dim"), [((7,), (0,)), ((3, 40), (1,)), ((3, 4, 5), (0, 2))])
def test_norms_of_any_order(
    shape: tuple[int, ...], dim: tuple[int, ...], dtype: Any, keepdim: bool, order: float
) -> None:
    x = np.random.default_rng(0).uniform(-2, 2, shape).astype(dtype)
    x.flat[0] = 0  # whose negative powers are infinite, of which NumPy would warn
    sizes = np.abs(x.astype(np.float64))
    with np.errstate(divide="ignore"):
        if np.isinf(order):
            expected = (sizes.max if order > 0 else sizes.min)(dim, keepdims=keepdim)
        else:
            expected = (sizes**order).sum(dim, keepdims=keepdim) ** (1 / order)
    found = statistics.Norm(norms._norm).call(x, order, dim, keepdim)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == np.float32 else 1e-12)


HALF_SHAPES = [
    ((9001,), (0,)),
    ((70, 130), (1,)),
    ((130, 70), (0,)),
    ((500, 7), (1,)),
    ((5, 3, 1001), (0, 2)),
    ((3, 70, 5), (1,)),
    ((4097, 2, 1), (0, 2)),
]


@pytest.mark.parametrize("kind", ["norm1", "norm2", "var", "std"])
@pytest.mark.parametrize(("shape", "dim"), HALF_SHAPES)
@pytest.mark.parametrize("dtype", [tp.bfloat16, tp.float16], ids=str)
def test_halves_are_rounded_once(
    dtype: Any, shape: tuple[int, ...], dim: tuple[int, ...], kind: str, threads: int
) -> None:
    """They are widened part by part: the result is that of the same numbers in float64, rounded."""
    tp.manual_seed(3)
    x = (tp.randn(shape) * 0.5 + 0.25).to(dtype)

    def taken(x: Any) -> Any:
        if kind in ("var", "std"):
            return getattr(x, kind)(dim)
        return tp.linalg.vector_norm(x, int(kind[-1]), dim)

    found, exact = taken(x), taken(x.double())
    assert found.dtype is dtype
    # Float32 has been rounded before, and may lie on the other side of the middle between two halves.
    assert (
        (found == (exact * (1 - 1e-6)).to(dtype)) | (found == (exact * (1 + 1e-6)).to(dtype))
    ).all()
