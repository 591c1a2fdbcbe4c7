"""Norms of rows with their weights: layer norm, RMS norm, group norm and instance norm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorplug.plugin import FLOATS, KernelTable

from ... import sources
from ..._cupy import cp
from ...dtypes import name_of

_LANES = 32  # as in sources/rownorm.cu
_BLOCKS = 2048  # that keep a device busy
WEIGHTS = np.dtype([("count", np.int64), ("repeat", np.int64)])


def build(table: KernelTable) -> None:
    """Add these kernels to `table`."""
    for function in (row_norm, row_norm_gradient, affine_row_norm, affine_row_norm_gradient):
        table.add(function.__name__, function, dtypes=FLOATS)


def _weights(count: int, repeat: int) -> Any:
    weights = np.zeros(1, WEIGHTS)
    weights["count"], weights["repeat"] = count, repeat
    return weights


def row_norm(input: Any, length: int, eps: float, centred: bool) -> Any:
    """Return runs of elements divided by their root mean square, perhaps less their mean."""
    return _normalized(input, None, None, length, _weights(0, 1), eps, centred)


def affine_row_norm(
    inputs: Sequence[Any], length: int, repeat: int, eps: float, centred: bool
) -> Any:
    """Return the same, times weights that are taken in turn, plus biases."""
    input, weight, *bias = inputs
    weights = _weights(weight.size, repeat)
    return _normalized(input, weight, bias[0] if bias else None, length, weights, eps, centred)


def _normalized(
    input: Any, weight: Any, bias: Any, length: int, weights: Any, eps: float, centred: bool
) -> Any:
    output = cp.empty(input.shape, input.dtype)
    if output.size:
        arrays = [None if a is None else cp.ascontiguousarray(a) for a in (input, weight, bias)]
        rows = output.size // length
        extents = (np.int64(rows), np.int64(length), weights, np.float64(eps), np.int32(centred))
        arguments = (*arrays, output, *extents)
        sources.launch("normalization_layer", "normalize_rows", name_of(input), rows, arguments)
    return output


def row_norm_gradient(g: Any, input: Any, length: int, eps: float, centred: bool) -> Any:
    """Return the gradient of :func:`row_norm`'s input."""
    return _gradient(g, input, None, length, _weights(0, 1), eps, centred)[0]


def _gradient(
    g: Any, input: Any, weight: Any, length: int, weights: Any, eps: float, centred: bool
) -> tuple[Any, tuple[Any, ...]]:
    """Return the gradient of the input, and what the sums for weights take."""
    result = cp.empty(input.shape, input.dtype)
    if not result.size:
        return result, ()
    gradient, array = [cp.ascontiguousarray(a) for a in (g, input)]
    rows = result.size // length
    statistics = None
    if weight is not None:
        weight = cp.ascontiguousarray(weight)
        statistics = cp.empty((rows, 2), _computed(input))
    extents = (np.int64(rows), np.int64(length), weights, np.float64(eps), np.int32(centred))
    arguments = (gradient, array, weight, result, statistics, *extents)
    sources.launch(
        "normalization_layer", "normalize_rows_gradient", name_of(input), rows, arguments
    )
    return result, (gradient, array, statistics)


def _computed(array: Any) -> Any:
    return np.dtype(np.float64 if array.dtype == np.float64 else np.float32)


def affine_row_norm_gradient(
    g: Any, input: Any, weight: Any, length: int, repeat: int, eps: float, centred: bool
) -> tuple[Any, Any, Any]:
    """Return the gradients of input, weights and biases."""
    weights = _weights(weight.size, repeat)
    result, arrays = _gradient(g, input, weight, length, weights, eps, centred)
    g_weight, g_bias = cp.empty(weight.shape, weight.dtype), cp.empty(weight.shape, weight.dtype)
    if not arrays:
        g_weight[...] = 0
        g_bias[...] = 0
        return result, g_weight, g_bias
    name, size = name_of(input), weight.size
    turns = input.size // (size * repeat)
    by_columns = repeat == 1 and size == length
    groups = -(-size // _LANES) if by_columns else size
    splits = max(1, min(_BLOCKS // groups, -(-turns // 64) if by_columns else turns))
    partial = cp.empty((splits, size, 2), _computed(input))
    extents: tuple[Any, ...] = (np.int64(turns), np.int64(length))
    if by_columns:
        kernel, extents = "sums_of_columns", (*extents, np.int64(splits))
    else:
        kernel, extents = "sums_of_turns", (*extents, weights, np.int64(splits))
    gradient, array, statistics = arrays
    arguments = (gradient, array, statistics, partial, *extents)
    sources.launch("normalization_layer", kernel, name, groups * splits, arguments)
    arguments = (partial, g_weight, g_bias, np.int64(size), np.int64(splits))
    sources.launch(
        "normalization_layer", "add_up_columns", name, sources.blocks_for(size), arguments
    )
    return result, g_weight, g_bias
