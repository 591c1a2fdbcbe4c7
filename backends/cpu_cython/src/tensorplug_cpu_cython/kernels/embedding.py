"""Kernels of the rows of a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorplug.plugin import ALL_DTYPES, KernelTable, dtype_named

from .. import creation, embedding as bags, indexing, pointwise
from .._dtypes import FLOATS, SINGLE_AND_DOUBLE
from ..below import below
from ..halves import HALVES, add_floats, in_single

_bag_in_single = in_single(bags.embedding_bag)


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    table.add("embedding_bag", bags.embedding_bag, dtypes=SINGLE_AND_DOUBLE)
    table.add("embedding_bag", _bag_of_halves, dtypes=HALVES)
    add_floats(table, "embedding_bag_backward", bags.embedding_bag_backward)
    table.add("embedding_renorm", bags.embedding_renorm, dtypes=SINGLE_AND_DOUBLE)
    table.add("embedding_renorm", _renorm_of_halves, dtypes=HALVES)
    one_hot_below = below("one_hot")

    @table.kernel(dtypes=ALL_DTYPES)
    def embedding(weight: Any, indices: Any, *_: Any) -> Any:
        return indexing.rows_of(weight, indices, _taken)

    @table.kernel(dtypes=FLOATS)
    def embedding_dense_backward(
        g: Any, indices: Any, rows: int, padding_idx: int, scale_grad_by_freq: bool
    ) -> Any:
        if scale_grad_by_freq and indices.size:
            counts = np.bincount(indices.reshape(-1), minlength=rows)[indices]
            g = (g / counts[..., None]).astype(g.dtype, copy=False)
        return indexing.rows_sum(g, indices, rows, padding_idx, _missing)

    @table.kernel(dtypes=(dtype_named("int64"),))
    def one_hot(tensor: Any, num_classes: int) -> Any:
        make = creation.one_hot if tensor.size else one_hot_below
        return make(tensor, num_classes)


def _bag_of_halves(weight: Any, input: Any, offsets: Any, *rest: Any) -> Any:
    """Return what the bags of a table hold; of a large one only the rows that are named are converted."""
    *others, padding = rest
    if input.size < len(weight):
        try:
            rows = indexing.rows_of(weight, input.reshape(-1), _taken)
        except IndexError:  # the kernel says it of bags
            return _bag_in_single(weight, input, offsets, *rest)
        places = np.arange(input.size).reshape(input.shape)
        if padding is not None and (unread := input == padding).any():
            padding = int(places[unread][0])  # one number for all of them
            places[unread] = padding
        else:
            padding = None
        weight, input = rows, places
    return _bag_in_single(weight, input, offsets, *others, padding)


def _renorm_of_halves(weight: Any, indices: Any, max_norm: float, norm_type: float) -> None:
    """Scale rows of a table down, in place; only these are converted."""
    used = indices.reshape(-1)  # of one that is named again, the same is written again
    rows = pointwise.cast(indexing.rows_of(weight, used, _taken), np.dtype(np.float32))
    bags.embedding_renorm(rows, np.arange(len(used)), max_norm, norm_type)
    weight[used] = pointwise.cast(rows, weight.dtype)


def _taken(weight: Any, indices: Any) -> Any:
    """Return rows of no elements, or say which row there is none of."""
    if indices.size and (indices.min() < 0 or indices.max() >= len(weight)):
        _missing(weight, indices, len(weight))
    return weight.take(indices, 0)


def _missing(_: Any, indices: Any, rows: int, *__: Any) -> Any:
    wrong = indices[(indices < 0) | (indices >= rows)].reshape(-1)[0]
    raise IndexError(f"index out of range in self: {wrong}, of {rows} rows")
