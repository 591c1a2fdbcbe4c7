"""Kernels that read from and write to the places that index arrays tell, and slices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorplug.plugin import ALL_DTYPES, KernelTable, Shape

from .. import indices as kernels
from ..below import below
from .places import SUMMED


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    shared = {op: below(op) for op in ("index", "index_put")}

    @table.kernel(dtypes=ALL_DTYPES)
    def index(input: Any, indices: list[Any]) -> Any:
        return kernels.index(input, indices, shared["index"])

    def index_put(
        input: Any, indices: list[Any], values: Any, accumulate: bool, out: Any = None
    ) -> Any:
        return kernels.index_put(input, indices, values, accumulate, shared["index_put"], out)

    table.add("index_put", index_put, dtypes=ALL_DTYPES, out=True)

    @table.kernel(dtypes=SUMMED)
    def index_backward(g: Any, shape: Shape, indices: list[Any]) -> Any:
        return kernels.indexed_sum(g, tuple(shape), indices, put)

    def put(g: Any, shape: Shape, indices: list[Any]) -> Any:
        return shared["index_put"](np.zeros(shape, g.dtype), indices, g, True)

    @table.kernel(dtypes=ALL_DTYPES)
    def index_select(input: Any, dim: int, index: Any) -> Any:
        return kernels.slices(input, dim, index, taken)

    @table.kernel(dtypes=ALL_DTYPES)
    def index_add(input: Any, dim: int, index: Any, source: Any) -> Any:
        return kernels.put_slices(input, dim, index, source, True, put_at)

    @table.kernel(dtypes=ALL_DTYPES)
    def index_copy(input: Any, dim: int, index: Any, source: Any) -> Any:
        return kernels.put_slices(input, dim, index, source, False, put_at)

    def index_write(input: Any, dim: int, index: Any, source: Any, accumulate: bool) -> None:
        kernels.write_slices(input, dim, index, source, accumulate, put_into)

    table.add("index_write", index_write, dtypes=ALL_DTYPES)
    table.add("masked_select", kernels.chosen, dtypes=ALL_DTYPES)

    def put_into(input: Any, dim: int, index: Any, source: Any, accumulate: bool) -> None:
        shared["index_put"](input, _key(input, dim, index), source, accumulate, input)

    def taken(input: Any, dim: int, index: Any) -> Any:
        return shared["index"](input, _key(input, dim, index))

    def put_at(input: Any, dim: int, index: Any, source: Any, accumulate: bool) -> Any:
        return shared["index_put"](input, _key(input, dim, index), source, accumulate)


def _key(input: Any, dim: int, index: Any) -> list[Any]:
    """Return the key of positions along a dimension, or say which of them does not exist."""
    size = input.shape[dim]
    wrong = index[(index < 0) | (index >= size)]
    if wrong.size:
        raise IndexError(f"index {wrong[0]} is out of bounds for dimension {dim} with size {size}")
    return [*[None] * dim, index]
