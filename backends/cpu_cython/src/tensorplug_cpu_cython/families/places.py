"""Kernels that read from, write to and combine with the places that an index tells."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorplug.plugin import ALL_DTYPES, KernelTable, Shape, dtype_named

from .. import places
from .._dtypes import NUMBERED
from ..below import below

_WAYS = {
    "sum": places.ADD,
    "prod": places.MULTIPLY,
    "amax": places.MAXIMUM,
    "amin": places.MINIMUM,
}
SUMMED = tuple([dtype for dtype in NUMBERED if dtype is not dtype_named("bool")])


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    shared = {op: below(op) for op in ("gather", "scatter", "scatter_add", "scatter_reduce")}

    @table.kernel(dtypes=ALL_DTYPES)
    def gather(input: Any, dim: int, index: Any) -> Any:
        return places.gather(input, dim, index, shared["gather"])

    def scatter(
        input: Any, dim: int, index: Any, src: Any, reduce: str | None, out: Any = None
    ) -> Any:
        if reduce is not None:
            return scatter_reduce(input, dim, index, src, reduce, True, out)
        return places.scatter(input, dim, index, src, shared["scatter"], out)

    def scatter_add(input: Any, dim: int, index: Any, src: Any, out: Any = None) -> Any:
        return places.combine(input, dim, index, src, places.ADD, shared["scatter_add"], out)

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

        way = _WAYS.get(reduce)
        if way is None or not include_self:
            return fallback(input, dim, index, src, out)
        return places.combine(input, dim, index, src, way, fallback, out)

    table.add("scatter", scatter, dtypes=ALL_DTYPES, out=True)
    table.add("scatter_add", scatter_add, dtypes=SUMMED, out=True)
    table.add("scatter_reduce", scatter_reduce, dtypes=SUMMED, out=True)

    @table.kernel(dtypes=SUMMED)
    def gather_backward(g: Any, shape: Shape, dim: int, index: Any) -> Any:
        return places.gathered_sum(g, tuple(shape), dim, index, added)

    def added(g: Any, shape: Shape, dim: int, index: Any) -> Any:
        return shared["scatter_add"](np.zeros(shape, g.dtype), dim, index, g)

    @table.kernel(dtypes=ALL_DTYPES)
    def place(input: Any, shape: Shape, key: tuple[Any, ...]) -> Any:
        return places.place(input, tuple(shape), key)
