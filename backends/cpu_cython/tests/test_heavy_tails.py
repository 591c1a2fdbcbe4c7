"""Sums and statistics of many numbers with heavy tails, as exact as the result's type: beside float64.

Of heavy tails a few numbers are all that counts, so that rounding each is seen; of the others there are
so many that adding them up one by one is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built")
import tensorplug as tp

F = tp.nn.functional

DRAWS: dict[str, Any] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "beside a large mean": lambda rng, shape: 1000 + rng.standard_normal(shape),
    "of Cauchy": lambda rng, shape: rng.standard_cauchy(shape),
    "lognormal": lambda rng, shape: rng.lognormal(0, 3, shape),
    "positive": lambda rng, shape: rng.uniform(0, 1, shape),
    "an outlier first": lambda rng, shape: np.where(
        np.arange(np.prod(shape)).reshape(shape) == 0, 1e6, rng.standard_normal(shape)
    ),
}
SHAPES: dict[str, tuple[tuple[int, ...], int]] = {
    "a row": ((1, 300_001), 1),
    "rows": ((7, 20_000), 1),
    "short rows": ((3000, 13), 1),
    "columns": ((20_000, 7), 0),
    "a block of columns": ((4097, 83), 0),
}
ULP = 2.0**-24  # half a unit in the last place of a number just above a power of two, relative


def drawn(draw: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.asarray(DRAWS[draw](np.random.default_rng(len(draw)), shape)).astype(np.float32)


def off(found: Any, expected: Any) -> float:
    """Return the largest relative error, in halves of a unit in the last place."""
    return float(np.max(np.abs(found.numpy().astype(np.float64) / expected - 1))) / ULP


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("op", ["var", "std"])
def test_variances_are_rounded_once(op: str, shape: str, draw: str) -> None:
    size, dim = SHAPES[shape]
    x = drawn(draw, size)
    expected = getattr(np, op)(x.astype(np.float64), axis=dim, ddof=1)
    assert off(getattr(tp, op)(tp.tensor(x), dim), expected) < 1.01


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("shape", ["a row", "rows", "short rows"])
def test_layer_norm(shape: str, draw: str) -> None:
    x = drawn(draw, SHAPES[shape][0])
    wide = x.astype(np.float64)
    mean, variance = wide.mean(1, keepdims=True), wide.var(1, keepdims=True)
    found, found_mean, found_rstd = tp.native_layer_norm(
        tp.tensor(x), x.shape[1:], None, None, 1e-5
    )
    assert off(found_rstd, 1 / np.sqrt(variance + 1e-5)) < 1.01
    size = np.abs(wide).mean(1, keepdims=True)
    assert np.max(np.abs(found_mean.numpy() - mean) / size) < 1.01 * ULP
    # The mean is rounded, which a deviation that is small beside it sees.
    expected = (wide - mean) / np.sqrt(variance + 1e-5)
    allowed = 4 * ULP * (np.abs(expected) + np.abs(mean) / np.sqrt(variance))
    assert np.all(np.abs(found.numpy() - expected) <= allowed + 1e-30)


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("layout", ["planes", "short planes", "channels last"])
def test_batch_norm(layout: str, draw: str) -> None:
    x = drawn(draw, (3000, 5, 4, 4) if layout == "short planes" else (3, 5, 130, 131))
    given = tp.tensor(x)
    if layout == "channels last":
        given = given.contiguous(memory_format=tp.channels_last)
    _, mean, rstd = tp.native_batch_norm(given, None, None, None, None, True, 0.1, 1e-5)
    wide = x.astype(np.float64)
    assert off(rstd, 1 / np.sqrt(wide.var((0, 2, 3)) + 1e-5)) < 1.01
    assert (
        np.max(np.abs(mean.numpy() - wide.mean((0, 2, 3))) / np.abs(wide).mean((0, 2, 3)))
        < 1.01 * ULP
    )


POOLED: dict[str, tuple[tuple[int, ...], Any, Any]] = {
    "a long row": (
        (1, 2, 300_001),
        lambda x: F.adaptive_avg_pool1d(x, 1),
        lambda x: x.mean(-1, keepdims=True),
    ),
    "halves of one": (
        (1, 2, 40_000),
        lambda x: F.adaptive_avg_pool1d(x, 2),
        lambda x: x.reshape(1, 2, 2, -1).mean(-1),
    ),
    "wide windows": (
        (2, 2, 3000),
        lambda x: F.avg_pool1d(x, 300),
        lambda x: x.reshape(2, 2, 10, 300).mean(-1),
    ),
    "tall windows": (
        (1, 2, 5000, 12),
        lambda x: F.avg_pool2d(x, (5000, 2)),
        lambda x: x.reshape(1, 2, 5000, 6, 2).mean((2, 4))[:, :, None],
    ),
    "windows wider than a block": (
        (1, 2, 70, 2000),
        lambda x: F.avg_pool2d(x, (70, 1000)),
        lambda x: x.reshape(1, 2, 70, 2, 1000).mean((2, 4))[:, :, None],
    ),
    "channels last": (
        (1, 8, 300, 300),
        lambda x: F.adaptive_avg_pool2d(x.contiguous(memory_format=tp.channels_last), 1),
        lambda x: x.mean((2, 3), keepdims=True),
    ),
}


@pytest.mark.parametrize("case", POOLED)
@pytest.mark.parametrize("draw", ["positive", "lognormal"])
def test_means_over_windows(case: str, draw: str) -> None:
    shape, pool, reference = POOLED[case]
    x = drawn(draw, shape)
    assert off(pool(tp.tensor(x)), reference(x.astype(np.float64))) < 6


@pytest.mark.parametrize("mode", ["sum", "mean"])
@pytest.mark.parametrize("features", [1, 5, 32, 70])
@pytest.mark.parametrize("weighted", [False, True])
def test_bags_of_many_rows(mode: str, features: int, weighted: bool) -> None:
    if weighted and mode == "mean":
        pytest.skip("factors go with sums alone")
    rng = np.random.default_rng(features)
    table, indices = drawn("positive", (500, features)), rng.integers(0, 500, (2, 30_000))
    factors = drawn("positive", indices.shape) if weighted else None
    found = F.embedding_bag(
        tp.tensor(indices),
        tp.tensor(table),
        mode=mode,
        per_sample_weights=None if factors is None else tp.tensor(factors),
    )
    rows = table.astype(np.float64)[indices] * (
        1 if factors is None else factors[..., None].astype(np.float64)
    )
    assert off(found, getattr(rows, mode)(1)) < 2
