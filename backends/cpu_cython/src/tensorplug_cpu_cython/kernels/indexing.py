"""Kernels that read from, write to and combine with what an index tells: arrays of indices, and slices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorplug.plugin import ALL_DTYPES, KernelTable, Shape

from .. import indexing, indexing_gather, pointwise
from .._dtypes import ELEMENTS, NATIVES, NUMBERED
from ..below import below

_WAYS = {
    "sum": indexing_gather.ADD,
    "prod": indexing_gather.MULTIPLY,
    "amax": indexing_gather.MAXIMUM,
    "amin": indexing_gather.MINIMUM,
}
_SINGLE = np.dtype(np.float32)
_HALVES = tuple([NATIVES[dtype] for dtype in NUMBERED if dtype.name in ("float16", "bfloat16")])


def _neutral(dtype: Any, reduce: str) -> float:
    """Return the number that changes nothing in a reduction."""
    if reduce in ("sum", "prod"):
        return float(reduce == "prod")
    if dtype.kind == "b":
        return float(reduce in ("prod", "amin"))
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return limits.max if reduce == "amin" else limits.min
    return np.inf if reduce == "amin" else -np.inf


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    _build_gather(table)
    _build_index(table)


def _build_gather(table: KernelTable) -> None:
    shared = {op: below(op) for op in ("scatter", "scatter_add", "scatter_reduce")}
    quotient = pointwise.Binary("floor_divide").call
    table.add("gather", indexing_gather.gather_kernel(below("gather")), dtypes=ALL_DTYPES)

    def scatter(
        input: Any, dim: int, index: Any, src: Any, reduce: str | None, out: Any = None
    ) -> Any:
        if reduce is not None:
            return scatter_reduce(input, dim, index, src, reduce, True, out)
        return indexing_gather.scatter(input, dim, index, src, shared["scatter"], out)

    def scatter_add(input: Any, dim: int, index: Any, src: Any, out: Any = None) -> Any:
        return indexing_gather.combine(
            input, dim, index, src, indexing_gather.ADD, shared["scatter_add"], out
        )

    def scatter_reduce(
        input: Any,
        dim: int,
        index: Any,
        src: Any,
        reduce: str,
        include_self: bool,
        out: Any = None,
    ) -> Any:
        def fallback(input: Any, dim: int, index: Any, src: Any, out: Any) -> Any:
            return shared["scatter_reduce"](input, dim, index, src, reduce, include_self, out)

        if out is not None and not include_self:
            return fallback(input, dim, index, src, out)
        if reduce == "mean":
            if out is not None or not input.ndim or input.dtype.kind in "bc":
                return fallback(input, dim, index, src, out)
            if input.dtype in _HALVES:
                wide = (pointwise.cast(input, _SINGLE), dim, index, pointwise.cast(src, _SINGLE))
                return pointwise.cast(mean(*wide, include_self), input.dtype)
            return mean(input, dim, index, src, include_self)
        if not include_self:
            input = neutral(input, dim, index, reduce)
        return indexing_gather.combine(input, dim, index, src, _WAYS[reduce], fallback, out)

    def neutral(input: Any, dim: int, index: Any, reduce: str) -> Any:
        """Return a copy in which the elements that are reduced hold what changes nothing."""
        number = np.asarray(_neutral(input.dtype, reduce), input.dtype)
        return indexing_gather.scatter(input, dim, index, number, shared["scatter"], None)

    def mean(input: Any, dim: int, index: Any, src: Any, include_self: bool) -> Any:
        is_whole = input.dtype.kind in "iu"
        kind = np.dtype(np.int64) if is_whole else input.dtype
        count = pointwise.fill_new(input.shape, int(include_self), kind)
        if not include_self:
            input = neutral(input, dim, index, "sum")
        add, one, plain = (
            indexing_gather.ADD,
            pointwise.fill_new((), 1, kind),
            shared["scatter_add"],
        )
        total = indexing_gather.combine(input, dim, index, src, add, plain, None)
        count = indexing_gather.combine(count, dim, index, one, add, plain, None)
        if not include_self:
            np.maximum(count, 1, out=count)
        if is_whole:
            return pointwise.cast(quotient(pointwise.cast(total, count.dtype), count), input.dtype)
        return np.divide(total, count, out=total)

    table.add("scatter", scatter, dtypes=ALL_DTYPES, out=True)
    table.add("scatter_add", scatter_add, dtypes=ELEMENTS, out=True)
    table.add("scatter_reduce", scatter_reduce, dtypes=ELEMENTS, out=True)

    @table.kernel(dtypes=ELEMENTS)
    def gather_backward(g: Any, shape: Shape, dim: int, index: Any) -> Any:
        return indexing_gather.gathered_sum(g, tuple(shape), dim, index, added)

    def added(g: Any, shape: Shape, dim: int, index: Any) -> Any:
        return shared["scatter_add"](np.zeros(shape, g.dtype), dim, index, g)

    @table.kernel(dtypes=ALL_DTYPES)
    def place(input: Any, shape: Shape, key: tuple[Any, ...]) -> Any:
        return indexing_gather.place(input, tuple(shape), key)


def _build_index(table: KernelTable) -> None:
    shared = {op: below(op) for op in ("index", "index_put")}
    table.add("index", indexing.index_kernel(below("index")), dtypes=ALL_DTYPES)

    def index_put(
        input: Any, indices: list[Any], values: Any, accumulate: bool, out: Any = None
    ) -> Any:
        return indexing.index_put(input, indices, values, accumulate, shared["index_put"], out)

    table.add("index_put", index_put, dtypes=ALL_DTYPES, out=True)

    @table.kernel(dtypes=ELEMENTS)
    def index_backward(g: Any, shape: Shape, indices: list[Any]) -> Any:
        return indexing.indexed_sum(g, tuple(shape), indices, put)

    def put(g: Any, shape: Shape, indices: list[Any]) -> Any:
        return shared["index_put"](np.zeros(shape, g.dtype), indices, g, True)

    @table.kernel(dtypes=ALL_DTYPES)
    def index_add(input: Any, dim: int, index: Any, source: Any) -> Any:
        return indexing.put_slices(input, dim, index, source, True, put_at)

    @table.kernel(dtypes=ALL_DTYPES)
    def index_copy(input: Any, dim: int, index: Any, source: Any) -> Any:
        return indexing.put_slices(input, dim, index, source, False, put_at)

    def index_write(input: Any, dim: int, index: Any, source: Any, accumulate: bool) -> None:
        indexing.write_slices(input, dim, index, source, accumulate, put_into)

    table.add("index_write", index_write, dtypes=ALL_DTYPES)
    table.add("masked_select", indexing.chosen, dtypes=ALL_DTYPES)

    def put_into(input: Any, dim: int, index: Any, source: Any, accumulate: bool) -> None:
        shared["index_put"](input, _key(input, dim, index), source, accumulate, input)

    def taken(input: Any, dim: int, index: Any) -> Any:
        return shared["index"](input, _key(input, dim, index))

    table.add("index_select", indexing.index_select_kernel(taken), dtypes=ALL_DTYPES)

    def put_at(input: Any, dim: int, index: Any, source: Any, accumulate: bool) -> Any:
        return shared["index_put"](input, _key(input, dim, index), source, accumulate)


def _key(input: Any, dim: int, index: Any) -> list[Any]:
    """Return the key of positions along a dimension, or say which of them does not exist."""
    size = input.shape[dim]
    wrong = index[(index < 0) | (index >= size)]
    if wrong.size:
        raise IndexError(f"index {wrong[0]} is out of bounds for dimension {dim} with size {size}")
    return [*[None] * dim, index]
