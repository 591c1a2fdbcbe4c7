"""Sorting, searching, sets, histograms and quantiles, compared with torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.testing.comparison import assert_close

NAN = float("nan")
Agree = Callable[..., None]


@pytest.mark.parametrize(
    "data",
    [
        [3, 1, 2, 1],
        [3.0, NAN, 1.0, NAN],
        [[3.0, 1.0], [0.0, 2.0]],
        5.0,
        np.zeros((0, 2)),
        np.zeros((2, 0)),
    ],
)
@pytest.mark.parametrize(
    "function",
    [
        lambda m, x: x.sort(stable=True),
        lambda m, x: x.sort(descending=True, stable=True),
        lambda m, x: x.argsort(stable=True),
        lambda m, x: m.msort(x),
        lambda m, x: x.topk(1),
        lambda m, x: x.topk(2, largest=False)[0],
        lambda m, x: x.topk(9),
        lambda m, x: x.kthvalue(2)[0],
        lambda m, x: x.kthvalue(0),
        lambda m, x: x.median(),
        lambda m, x: x.median(-1, keepdim=True),
        lambda m, x: x.nanmedian(0),
        lambda m, x: x.nonzero(),
        lambda m, x: x.nonzero(as_tuple=True),
        lambda m, x: m.where(x > 1),
        lambda m, x: x.unique(return_inverse=True, return_counts=True),
        lambda m, x: m.unique_consecutive(x, return_inverse=True, return_counts=True),
        lambda m, x: m.unique(x, dim=0, return_inverse=True, return_counts=True),
        lambda m, x: m.unique_consecutive(x, dim=-1, return_counts=True),
    ],
)
def test_order(agree: Agree, function: Any, data: Any) -> None:
    agree(function, np.asarray(data))


@pytest.mark.parametrize("right", [False, True])
def test_searching(agree: Agree, right: bool) -> None:
    agree(lambda m, s, v: m.searchsorted(s, v, right=right), [1.0, 3.0, 5.0], [[3.0, 6.0, NAN]])
    agree(lambda m, s, v: m.searchsorted(s, v, right=right), [[1, 3], [2, 4]], [[3], [2]])
    agree(lambda m, s, v: m.searchsorted(s, v, right=right), [[1, 3], [2, 4]], [3])
    agree(lambda m, s: m.searchsorted(s, 3, right=right, out_int32=True), [1, 3, 5])
    agree(lambda m, s: m.searchsorted(s, s, side="left", right=right), [1, 3, 5])
    agree(lambda m, s, o: m.searchsorted(s, s, sorter=o, right=right), [5, 1, 3], [1, 2, 0])
    agree(lambda m, s, v: m.bucketize(v, s, right=right), [1, 3, 5], [[1], [6]])
    agree(lambda m, s: m.bucketize(3, s, right=right), [1, 3, 5])


def test_membership(agree: Agree) -> None:
    agree(lambda m, a, b: m.isin(a, b), [[1, 2], [3, 4]], [2, 4, 7])
    agree(lambda m, a, b: m.isin(a, b, invert=True), [1.5, NAN], [NAN, 1.5])
    agree(lambda m, a: m.isin(a, 2), [1, 2])
    agree(lambda m, a: m.isin(2, a), [1, 2])
    agree(lambda m, a, b: m.isin(a, b), [1, 2], np.zeros(0, np.int64))


def test_counting(agree: Agree) -> None:
    agree(lambda m, x: m.bincount(x), [1, 1, 3])
    agree(lambda m, x: m.bincount(x, minlength=6), [1, 1, 3])
    agree(lambda m, x, w: m.bincount(x, w), [1, 1, 3], np.array([0.5, 1, 2], np.float32))
    agree(lambda m, x, w: m.bincount(x, w), [1, 1, 3], [1, 2, 3])
    agree(lambda m, x: m.bincount(x), [-1])
    agree(lambda m, x: m.bincount(x), [[1]])
    agree(lambda m, x: m.histc(x, 4), [1.0, 2.0, 1.0])
    agree(lambda m, x: m.histc(x, 4), [1.0, 1.0])
    agree(lambda m, x: m.histc(x, 4, 0, 2), [1.0, NAN, 2.0, 3.0])
    agree(lambda m, x: m.histc(x, 4, 3, 2), [1.0])
    agree(lambda m, x: m.histogram(x, 3), [1.0, 1.0])
    agree(lambda m, x: m.histogram(x, 3, density=True), [[1.0, 2.0], [3.0, 4.0]])
    agree(lambda m, x, e: m.histogram(x, e), [1.0, 2.0, 0.5], [0.0, 1.0, 2.0])
    agree(lambda m, x: m.histogramdd(x, [2, 3]).hist, [[1.0, 2.0], [3.0, 4.0]])
    for shape, bins in (
        ((5, 0), []),
        ((5, 0), 3),
        ((2, 3, 0), []),
        ((0, 0), []),
        ((7, 0, 3), [1, 2, 3]),
        ((0, 2), 2),
    ):
        for weighted in (False, True):
            for density in (False, True):
                agree(
                    lambda m, x, s=shape, b=bins, w=weighted, d=density: (
                        m.histogramdd(
                            x.new_ones(s), b, weight=x.new_ones(s[:-1]) if w else None, density=d
                        ).hist
                    ),
                    1.0,
                )


@pytest.mark.parametrize("way", ["linear", "lower", "higher", "midpoint", "nearest", "median"])
def test_quantiles(agree: Agree, way: str) -> None:
    grid = [[4.0, 1.0, 3.0, 2.0], [NAN, 1.0, NAN, 2.0]]
    agree(lambda m, x, q: m.quantile(x, q, 1, interpolation=way), grid, [0.0, 0.3, 1.0])
    agree(lambda m, x: m.nanquantile(x, 0.5, 1, True, interpolation=way), grid)
    agree(lambda m, x: m.quantile(x, 0.5, keepdim=True, interpolation=way), grid)
    agree(lambda m, x: m.quantile(x, 2.0, interpolation=way), grid)


def test_differences_and_integrals(agree: Agree) -> None:
    line, grid = [1.0, 2.0, 4.0, 8.0], [[0.0, 1.0, 4.0], [9.0, 16.0, 25.0], [36.0, 49.0, 64.0]]
    agree(lambda m, x: m.diff(x, 2), line)
    agree(lambda m, x, a: m.diff(x, prepend=a, append=a), line, [7.0])
    agree(lambda m, x: m.diff(x), [True, False, False])
    agree(lambda m, x: m.gradient(x), line)
    agree(lambda m, x: m.gradient(x, spacing=[2.0, 0.5], edge_order=2), grid)
    agree(lambda m, x, c: m.gradient(x, spacing=(c,)), line, [0.0, 1.0, 3.0, 4.0])
    agree(lambda m, x, c: m.gradient(x, spacing=(c,), edge_order=2), line, [0.0, 1.0, 3.0, 4.0])
    agree(lambda m, x: m.trapezoid(x, dx=2, dim=0), grid)
    agree(lambda m, x, c: m.trapz(x, c), grid, [0.0, 1.0, 3.0])
    agree(lambda m, x, c: m.cumulative_trapezoid(x, c), grid, [0.0, 1.0, 3.0])


def test_distances(agree: Agree) -> None:
    a, b = [[1.0, 2.0], [0.0, 0.0]], [[3.0, 4.0], [0.0, 0.0], [1.0, 2.0]]
    for p in (0.0, 1.0, 2.0, 3.0, float("inf")):
        agree(lambda m, x, y, p=p: m.cdist(x, y, p), a, b)
        agree(lambda m, x, p=p: m.pdist(x, p), b)
        agree(lambda m, x, y, p=p: m.dist(x, y, p), a, [[3.0, 4.0]])
    agree(lambda m, x: m.renorm(x, 2, 0, 3), a)
    agree(lambda m, x, w: m.cov(x, fweights=w), a, [1, 2])
    agree(lambda m, x: m.corrcoef(x), [[0.0, 2.0, 3.0], [1.0, 1.0, 5.0]])


def test_many_points_take_the_matrix_product() -> None:
    x = tp.arange(60, dtype=tp.float64).reshape(30, 2)
    exact = tp.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist")
    assert (tp.cdist(x, x) - exact).abs().max().item() < 1e-5


def test_unique_keeps_the_gradient_of_the_first() -> None:
    x = tp.tensor([3.0, 1.0, 3.0], requires_grad=True)
    tp.unique(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1.0, 1.0, 0.0]


@pytest.mark.parametrize("dtype", [tp.float32, tp.bfloat16, tp.int64, tp.uint8, tp.bool])
@pytest.mark.parametrize("dim", [0, -1])
def test_slices_of_a_vector_are_its_elements(dtype: tp.dtype, dim: int) -> None:
    x = tp.tensor([1, 0, 1, 1, 0, 1]).to(dtype)
    kinds = [(False, False), (True, False), (False, True), (True, True)]
    for inverse, counts in kinds:
        found = tp.unique(x, return_inverse=inverse, return_counts=counts, dim=dim)
        matrix = tp.unique(x[:, None], return_inverse=inverse, return_counts=counts, dim=0)
        first, *others = found if isinstance(found, tuple) else (found,)
        expected, *rest = matrix if isinstance(matrix, tuple) else (matrix,)
        assert_close(first, expected[:, 0], rtol=0, atol=0)
        for one, other in zip(others, rest, strict=True):
            assert_close(one, other, rtol=0, atol=0)
    with pytest.raises(IndexError):
        tp.unique(x, dim=1)


@pytest.mark.parametrize(
    "values", [[], [True], [False] * 3, [True, False, True], [[False], [True]]]
)
def test_unique_of_truth_values(values: list[Any]) -> None:
    array = np.array(values, bool)
    found = tp.tensor(array).unique(return_inverse=True, return_counts=True)
    expected = np.unique(array, return_inverse=True, return_counts=True)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.reshape(ours.shape))
    assert found[0].dtype is tp.bool
    assert found[1].shape == array.shape
    np.testing.assert_array_equal(tp.tensor(array).unique().numpy(), expected[0])
