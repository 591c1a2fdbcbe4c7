"""Reductions over axes, cumulative sums, and what is sorted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorplug.core import Tensor, ops

from ..registry import operator
from ..values import dtype_of

__all__: list[str] = []


def _l1(x: Tensor, dims: Any, keep: bool) -> Tensor:
    return ops.sum(ops.abs(x), dims, keepdim=keep)


def _l2(x: Tensor, dims: Any, keep: bool) -> Tensor:
    return ops.sqrt(_sum_square(x, dims, keep)).to(x.dtype)


def _log_sum(x: Tensor, dims: Any, keep: bool) -> Tensor:
    return ops.log(_sum(x, dims, keep)).to(x.dtype)


def _log_sum_exp(x: Tensor, dims: Any, keep: bool) -> Tensor:
    return ops.logsumexp(x, dims, keepdim=keep)


def _sum_square(x: Tensor, dims: Any, keep: bool) -> Tensor:
    return ops.sum(x * x, dims, keepdim=keep)


def _sum(x: Tensor, dims: Any, keep: bool) -> Tensor:
    return ops.sum(x, dims, keepdim=keep)


def _mean(x: Tensor, dims: Any, keep: bool) -> Tensor:
    if x.dtype.is_floating_point:
        return ops.mean(x, dims, keepdim=keep)
    count = x.numel() // max(ops.sum(x, dims).numel(), 1)
    return ops.div(ops.sum(x, dims, keepdim=keep), count, rounding_mode="trunc")


def _prod(x: Tensor, dims: Any, keep: bool) -> Tensor:
    for dim in sorted(dims, reverse=True):
        x = ops.prod(x, dim, keepdim=keep)
    return x


def _extreme(function: Callable[..., Any], largest: bool) -> Callable[..., Any]:
    def reduce(x: Tensor, dims: Any, keep: bool) -> Tensor:
        if x.dtype == dtype_of(9):
            return (ops.any if largest else ops.all)(x, dims, keepdim=keep)
        if any(x.shape[d] == 0 for d in dims):
            shape = [1 if d in dims else n for d, n in enumerate(x.shape) if keep or d not in dims]
            return ops.full(shape, _bound(x.dtype, not largest), dtype=x.dtype, device=x.device)
        return function(x, dims, keepdim=keep)

    return reduce


def _bound(dtype: Any, largest: bool) -> Any:
    from tensorplug.core.device.dtypes import iinfo

    if dtype.is_floating_point:
        return float("inf") if largest else float("-inf")
    return iinfo(dtype).max if largest else iinfo(dtype).min


def _reduction(name: str, function: Callable[..., Any]) -> None:
    def reduce(
        data: Tensor,
        axes: Sequence[int] | None = None,
        *,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> Tensor:
        if not axes and noop_with_empty_axes:
            return function(data[None], [0], False)  # the elements' own function is still due
        dims = [axis % data.dim() for axis in axes] if axes else list(range(data.dim()))
        if not dims:
            return function(data[None], [0], False)
        return function(data, dims, bool(keepdims)).to(data.dtype)

    operator(name, host=("axes",))(reduce)


for _name, _function in {
    "ReduceL1": _l1,
    "ReduceL2": _l2,
    "ReduceLogSum": _log_sum,
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": _extreme(ops.amax, True),
    "ReduceMean": _mean,
    "ReduceMin": _extreme(ops.amin, False),
    "ReduceProd": _prod,
    "ReduceSum": _sum,
    "ReduceSumSquare": _sum_square,
}.items():
    _reduction(_name, _function)


def _position(name: str, function: Callable[..., Any]) -> None:
    def find(
        data: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0
    ) -> Tensor:
        if select_last_index:
            found = function(ops.flip(data, [axis]), dim=axis, keepdim=bool(keepdims))
            return data.shape[axis] - 1 - found
        return function(data, dim=axis, keepdim=bool(keepdims))

    operator(name)(find)


_position("ArgMax", ops.argmax)
_position("ArgMin", ops.argmin)


def _cumulative(name: str, function: Callable[..., Any], start: int) -> None:
    def accumulate(x: Tensor, axis: Any, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
        [dim] = axis if isinstance(axis, list) else [axis]
        if reverse:
            x = ops.flip(x, [dim])
        if exclusive:
            first = ops.full_like(ops.narrow(x, dim, 0, 1), start)
            x = ops.cat([first, ops.narrow(x, dim, 0, x.shape[dim] - 1)], dim)
        result = function(x, dim).to(x.dtype)
        return ops.flip(result, [dim]) if reverse else result

    operator(name, host=("axis",))(accumulate)


_cumulative("CumSum", ops.cumsum, 0)
_cumulative("CumProd", ops.cumprod, 1)


@operator("TopK", host=("k",))
def top_k(
    X: Tensor, k: Any, *, axis: int = -1, largest: int = 1, sorted: int = 1
) -> tuple[Tensor, Tensor]:
    """Return the largest elements with their places; of equal ones the first comes first."""
    [count] = k if isinstance(k, list) else [k]
    order = ops.argsort(X, dim=axis, descending=bool(largest), stable=True)
    places = ops.narrow(order, axis, 0, count)
    return ops.gather(X, axis, places), places


@operator("Unique")
def unique(
    X: Tensor, *, axis: int | None = None, sorted: int = 1
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    values, inverse, counts = ops.unique(X, return_inverse=True, return_counts=True, dim=axis)
    flat = inverse.reshape(-1)
    places = ops.arange(flat.numel(), device=X.device)
    first = ops.full_like(counts, flat.numel()).scatter_reduce(0, flat, places, "amin")
    if not sorted:  # in the order in which they are met
        order = ops.argsort(first)
        rank = ops.argsort(order)
        values = ops.index_select(values, axis or 0, order)
        first, counts, flat = first[order], counts[order], rank[flat]
    return values, first, flat, counts


@operator("NonZero")
def non_zero(X: Tensor) -> Tensor:
    if X.dim() == 0:
        return ops.zeros((0, int(bool(X))), dtype=dtype_of(7), device=X.device)
    return ops.nonzero(X).T
