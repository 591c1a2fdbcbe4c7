"""Reductions, cumulative ops and softmax where they are easy to get wrong, compared with torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import tensorplug as tp

NAN, INF = float("nan"), float("inf")
Agree = Callable[..., None]

GRID = [[1.0, NAN, 3.0], [NAN, NAN, NAN], [2.0, 2.0, 1.0]]
WHOLE = [[3, 1, 2], [1, 3, 3]]
ZEROS = [[1.0, 0.0, 2.0], [0.0, 0.0, 3.0], [1.5, 2.0, 3.0]]
TIES = [[3.0, 3.0, 1.0], [2.0, 2.0, 2.0]]


@pytest.mark.parametrize(
    "function",
    [
        lambda m, x: x.sum(),
        lambda m, x: x.sum((0, -1), keepdim=True),
        lambda m, x: x.sum(dim=[]),
        lambda m, x: x.sum(axis=0, keepdims=True),
        lambda m, x: x.sum(0, dtype=m.float64),
        lambda m, x: x.sum(dtype=m.int8),
        lambda m, x: x.sum(1, 2),
        lambda m, x: x.max(1, 2),
        lambda m, x: x.amax(0, 1),
        lambda m, x: x.var(0, 1),
        lambda m, x: x.std(0, 1, 2),
        lambda m, x: x.median(0, 1),
        lambda m, x: x.norm(2, 0, 1),
        lambda m, x: x.sort(0, 1),
        lambda m, x: x.topk(1, 0, 1),
        lambda m, x: x.unique(1),
        lambda m, x: x.all(True),
        lambda m, x: x.sum(True),
        lambda m, x: x.unsqueeze(False),
        lambda m, x: x.max(1, True),
        lambda m, x: m.nanmean(x, dtype=m.int32),
        lambda m, x: m.lerp(x, x, "x"),
        lambda m, x: x.sum(3),
        lambda m, x: x.sum((0, 0)),
        lambda m, x: x.mean(1),
        lambda m, x: x.mean(dtype=m.float32),
        lambda m, x: x.prod(0),
        lambda m, x: x.prod((0, 1)),
        lambda m, x: x.any(0),
        lambda m, x: x.any(()),
        lambda m, x: x.all((0, 1)),
        lambda m, x: x.nansum(0),
        lambda m, x: x.nanmean(0),
        lambda m, x: x.amax((0, 1)),
        lambda m, x: x.amin(0, keepdim=True),
        lambda m, x: m.aminmax(x),
        lambda m, x: m.aminmax(x, dim=1, keepdim=True),
        lambda m, x: x.max(),
        lambda m, x: x.max(1),
        lambda m, x: x.max(dim=0),
        lambda m, x: m.max(x, x.flip(0)),
        lambda m, x: m.min(x, other=x.flip(0)),
        lambda m, x: x.max(dim=(0, 1)),
        lambda m, x: x.min(0).indices,
        lambda m, x: x.argmax(),
        lambda m, x: x.argmax(1, True),
        lambda m, x: x.argmin(keepdim=True),
        lambda m, x: x.count_nonzero((0, 1)),
        lambda m, x: x.cumsum(0),
        lambda m, x: x.cumprod(1, dtype=m.float64),
        lambda m, x: x.cumsum(0, m.int64),
        lambda m, x: x.cummax(1),
        lambda m, x: x.cummin(0),
        lambda m, x: x.logcumsumexp(1),
        lambda m, x: x.logsumexp(0),
        lambda m, x: x.logsumexp((0, 1), keepdim=True),
        lambda m, x: x.softmax(1),
        lambda m, x: x.softmax(0, dtype=m.float64),
        lambda m, x: x.log_softmax(-1),
        lambda m, x: x.softmax(None),
        lambda m, x: x.var(),
        lambda m, x: x.std(False),
        lambda m, x: x.var(0, False, True),
        lambda m, x: x.std((0, 1), correction=2),
        lambda m, x: x.norm(),
        lambda m, x: x.norm(INF, 1),
        lambda m, x: x.norm("fro", (0, 1)),
        lambda m, x: x.norm(0, 0),
    ],
)
@pytest.mark.parametrize(
    "data",
    [
        GRID,
        WHOLE,
        [[True, False], [False, False]],
        [[1 + 2j, 0j], [3j, -1 + 0j]],
        np.zeros((0, 3), np.float32),
        np.zeros((2, 0)),
        np.array([[1, 200], [255, 255]], np.uint8),
        np.array([[-INF, -INF], [INF, 1.0]]),
        np.array([[60000.0, 60000.0], [1.0, 2.0]], np.float16),
    ],
    ids=["nan", "int", "bool", "complex", "empty", "empty rows", "uint8", "infinite", "half"],
)
def test_results_and_errors(agree: Agree, function: Any, data: Any) -> None:
    source = np.asarray(data)
    if _is_left_out(function, source):
        pytest.skip("torch leaves this dtype out on the CPU")
    agree(function, source.astype(np.float32) if source.dtype == np.float64 else source)


def _is_left_out(function: Any, source: Any) -> bool:
    """Return whether torch refuses the dtype as "not implemented"; we may compute it."""
    torch = pytest.importorskip("torch", reason="torch is the reference of these comparisons")
    try:
        function(torch, torch.tensor(source))
    except NotImplementedError:
        return True
    except Exception:
        return False
    return False


@pytest.mark.parametrize("data", [ZEROS, TIES, np.array([[1 + 1j, 0j], [2j, 1 - 1j]])])
@pytest.mark.parametrize(
    "function",
    [
        lambda m, x: x.prod(),
        lambda m, x: x.prod(1),
        lambda m, x: x.cumprod(0),
        lambda m, x: x.cumprod(1),
        lambda m, x: x.cumsum(1),
        lambda m, x: x.mean((0, 1)),
        lambda m, x: x.var(1, correction=0),
        lambda m, x: x.logsumexp(1),
        lambda m, x: x.logcumsumexp(0),
    ],
)
def test_gradients(agree: Agree, function: Any, data: Any) -> None:
    agree(function, np.asarray(data), gradient=True)


@pytest.mark.parametrize("data", [ZEROS, TIES])
@pytest.mark.parametrize(
    "function",
    [
        lambda m, x: x.max(),
        lambda m, x: x.amin(0),
        lambda m, x: x.amax((0, 1), True),
        lambda m, x: x.max(1)[0],
        lambda m, x: m.aminmax(x, dim=0)[1],
        lambda m, x: x.std(1),
        lambda m, x: x.norm(),
        lambda m, x: x.norm(2, 1),
        lambda m, x: x.norm(3, 0),
        lambda m, x: x.norm(INF, 1),
        lambda m, x: x.cummax(1)[0],
        lambda m, x: x.cummin(0)[0],
        lambda m, x: x.softmax(0),
        lambda m, x: x.log_softmax(1),
        lambda m, x: x.median(),
        lambda m, x: x.median(1)[0],
        lambda m, x: x.mode(1)[0],
        lambda m, x: x.sort(1)[0],
        lambda m, x: m.quantile(x, 0.4, 1),
        lambda m, x: m.cdist(x, x.flip(0)),
        lambda m, x: m.cov(x),
    ],
)
def test_gradients_at_ties_and_zeros(agree: Agree, function: Any, data: Any) -> None:
    agree(function, np.asarray(data), gradient=True)


def test_second_derivative_of_a_product_with_zeros() -> None:
    x = tp.tensor([2.0, 0.0, 3.0, 0.0], dtype=tp.float64, requires_grad=True)
    (first,) = tp.autograd.grad(x.prod(), [x], create_graph=True)
    assert first.tolist() == [0.0, 0.0, 0.0, 0.0]
    (second,) = tp.autograd.grad(first[1], [x])
    assert second.tolist() == [0.0, 0.0, 0.0, 6.0]


def test_second_derivative_of_a_norm_at_zero_is_finite() -> None:
    x = tp.zeros(3, requires_grad=True)
    (first,) = tp.autograd.grad(x.norm(), [x], create_graph=True)
    (second,) = tp.autograd.grad(first.sum(), [x])
    assert second.tolist() == [0.0, 0.0, 0.0]


def test_the_gradient_of_a_maximum_that_is_nan_goes_to_nan() -> None:
    x = tp.tensor([1.0, NAN, NAN], requires_grad=True)
    x.amax().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.0, 0.5, 0.5]


def test_half_precision_is_summed_in_single() -> None:
    x = tp.ones(5000, dtype=tp.float16)
    assert x.sum().item() == 5000.0
    assert x.mean().item() == 1.0
    assert tp.full((1000,), 200.0, dtype=tp.float16).mean().item() == 200.0


def test_narrow_sums_wrap_around() -> None:
    assert tp.tensor([200, 100], dtype=tp.uint8).sum(dtype=tp.uint8).item() == 44


def test_softmax_of_large_numbers() -> None:
    x = tp.tensor([[1e4, 0.0], [-1e30, -1e30]])
    assert x.softmax(1).tolist() == [[1.0, 0.0], [0.5, 0.5]]
    assert x.log_softmax(1)[0].tolist() == [0.0, -1e4]
    assert tp.logsumexp(x, 1).isfinite().all()


def test_named_results() -> None:
    found = tp.tensor([[1.0, 5.0], [7.0, 2.0]]).max(dim=1)
    assert type(found).__name__ == "max"
    assert isinstance(found, tp.return_types.max)
    values, indices = found
    assert (values is found.values, indices is found.indices) == (True, True)
    assert repr(found).startswith("tensorplug.return_types.max(\nvalues=tensor(")


def test_out_of_several_results() -> None:
    values, indices = tp.empty(2), tp.empty(2, dtype=tp.int64)
    found = tp.max(tp.tensor([[1.0, 5.0], [7.0, 2.0]]), 1, out=(values, indices))
    assert found.values is values
    assert indices.tolist() == [1, 0]


floats = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4),
    elements=st.floats(allow_nan=True, width=32) | st.sampled_from([0.0, -0.0, 1.0, INF]),
)


@settings(max_examples=60, deadline=None)
@given(floats, st.data())
def test_extrema_and_orders_against_numpy(array: Any, data: Any) -> None:
    x = tp.from_numpy(array.copy())
    dim = data.draw(st.integers(-array.ndim, array.ndim - 1))
    order = x.argsort(dim, stable=True).numpy()
    np.testing.assert_array_equal(order, np.argsort(array, dim, kind="stable"))
    np.testing.assert_array_equal(x.sort(dim)[0].numpy(), np.sort(array, dim))
    backwards = x.sort(dim, descending=True)
    np.testing.assert_array_equal(backwards[0].numpy(), np.flip(np.sort(array, dim), dim))
    np.testing.assert_array_equal(backwards[0].numpy(), x.gather(dim, backwards[1]).numpy())
    if array.shape[dim]:
        np.testing.assert_array_equal(x.amax(dim).numpy(), np.max(array, dim))
        values, indices = x.min(dim)
        np.testing.assert_array_equal(values.numpy(), np.min(array, dim))
        np.testing.assert_array_equal(indices.numpy(), np.argmin(array, dim))
    np.testing.assert_array_equal(x.cummax(dim)[0].numpy(), np.maximum.accumulate(array, dim))


@pytest.mark.parametrize("dtype", [tp.float16, tp.bfloat16, tp.float32, tp.float64])
def test_nanmean_of_nothing(dtype: tp.dtype) -> None:
    assert tp.nanmean(tp.zeros(0, dtype=dtype)).isnan()
    assert tp.nanmean(tp.zeros(2, 0, dtype=dtype), 1).isnan().all()
