"""Rows of a table by their numbers, and their gradient."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorplug.plugin import ALL_DTYPES, FLOATS, KernelTable, deterministic_wanted

from .. import sources
from .._cupy import cp
from ..dtypes import name_of
from .indexing import combine_rows


def build(table: KernelTable) -> None:
    """Add these kernels to `table`."""
    table.add("embedding", embedding, dtypes=ALL_DTYPES)
    table.add("embedding_dense_backward", embedding_dense_backward, dtypes=FLOATS)


def embedding(weight: Any, indices: Any, *_: Any) -> Any:
    """Return the rows of `weight` that `indices` names; of one that is not there, NaN or zeros."""
    rows, width = weight.shape
    output = cp.empty((*indices.shape, width), weight.dtype)
    if output.size:
        # Rows are copied as bits, whatever they mean: one source serves all dtypes of a size.
        bits = np.dtype(f"u{min(weight.itemsize, 8)}")
        table, chosen = cp.ascontiguousarray(weight), cp.ascontiguousarray(indices)
        width *= weight.itemsize // bits.itemsize
        absent = _bits_of_nan(weight.dtype)
        sources.launch(
            "embedding_rows", "rows_of", bits.name, sources.blocks_for(math.prod(indices.shape) * width),
            (table, chosen.astype(np.int64, copy=False), output, np.int64(indices.size), np.int64(width),
             np.int64(rows), np.uint64(absent)),
        )  # fmt: skip
    return output


def _bits_of_nan(dtype: Any) -> int:
    """Return what stands in a row that is not there: NaN, or 0 where there is none."""
    if dtype.kind in "biu":
        return 0
    real = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
    return int.from_bytes(np.array(np.nan, real).tobytes(), "little")


def embedding_dense_backward(
    g: Any, indices: Any, rows: int, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    """Return the gradient of the table; halves are added up in float32."""
    width = g.shape[-1]
    computed = np.dtype(np.float64 if g.dtype == np.float64 else np.float32)
    result = cp.zeros((rows, width), computed)
    if g.size and rows:
        chosen = cp.ascontiguousarray(indices).astype(np.int64, copy=False)
        counts, count = None, np.int64(indices.size)
        if scale_grad_by_freq:
            counts = cp.zeros(rows, np.int32)
            blocks = sources.blocks_for(indices.size)
            arguments = (chosen, counts, count, np.int64(rows))
            sources.launch("embedding", "count_rows", name_of(g), blocks, arguments)
        if deterministic_wanted():
            _add_sorted(result, g, chosen, counts, padding_idx)
            return result.astype(g.dtype, copy=False)
        sources.launch(
            "embedding", "add_rows", name_of(g), sources.blocks_for(g.size),
            (cp.ascontiguousarray(g), chosen, counts, result, count, np.int64(width), np.int64(rows),
             np.int64(padding_idx)),
        )  # fmt: skip
    return result.astype(g.dtype, copy=False)


def _add_sorted(result: Any, g: Any, chosen: Any, counts: Any | None, padding_idx: int) -> None:
    """Add up the rows of a gradient in the order in which they come."""
    rows, width = result.shape
    flat = chosen.reshape(-1)
    values = g.reshape(flat.size, width).astype(result.dtype)
    if counts is not None:
        values /= counts[flat % rows].astype(result.dtype)[:, None]
    kept = cp.where(flat == padding_idx, rows, flat) if padding_idx >= 0 else flat
    # What is not there stays where it cannot count from the end.
    combine_rows(result.reshape(-1), cp.where(kept < 0, rows, kept), values, width, rows)
