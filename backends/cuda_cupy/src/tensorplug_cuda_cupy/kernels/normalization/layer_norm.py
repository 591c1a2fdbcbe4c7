"""Norms of rows with their weights: layer norm, RMS norm, group norm and instance norm."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from tensorplug.plugin import FLOATS, KernelTable, Shape

from ... import sources
from ..._cupy import cp
from ...dtypes import name_of

_LANES = 32  # as in sources/rownorm.cu
_BLOCKS = 2048  # that keep a device busy
WEIGHTS = np.dtype([("count", np.int64), ("repeat", np.int64)])


def build(table: KernelTable) -> None:
    """Add these kernels to `table`."""
    for function in (
        layer_norm,
        layer_norm_backward,
        rms_norm,
        rms_norm_backward,
        group_norm,
        group_norm_backward,
    ):
        table.add(function.__name__, function, dtypes=FLOATS)


@lru_cache(maxsize=1024)
def _weights(count: int, repeat: int) -> Any:
    weights = np.zeros(1, WEIGHTS)
    weights["count"], weights["repeat"] = count, repeat
    return sources.by_value(weights)


def layer_norm(input: Any, normalized_shape: Shape, weight: Any, bias: Any, eps: float) -> Any:
    """Return the input standardized over its last dimensions."""
    return _rows(input, weight, bias, math.prod(normalized_shape), 1, eps, True)


def layer_norm_backward(
    g: Any, input: Any, normalized_shape: Shape, weight: Any, eps: float
) -> tuple[Any, Any, Any]:
    """Return the gradients of input, weight and bias."""
    return _backward(g, input, weight, math.prod(normalized_shape), 1, eps, True)


def rms_norm(input: Any, normalized_shape: Shape, weight: Any, eps: float) -> Any:
    """Return the input divided by its root mean square over its last dimensions."""
    return _rows(input, weight, None, math.prod(normalized_shape), 1, eps, False)


def rms_norm_backward(
    g: Any, input: Any, normalized_shape: Shape, weight: Any, eps: float
) -> tuple[Any, Any]:
    """Return the gradients of input and weight."""
    return _backward(g, input, weight, math.prod(normalized_shape), 1, eps, False)[:2]


def group_norm(input: Any, num_groups: int, weight: Any, bias: Any, eps: float) -> Any:
    """Return the input standardized over groups of channels."""
    places = math.prod(input.shape[2:])
    length = input.shape[1] // num_groups * places
    return _rows(input, weight, bias, length, places, eps, True)


def group_norm_backward(
    g: Any, input: Any, num_groups: int, weight: Any, eps: float
) -> tuple[Any, Any, Any]:
    """Return the gradients of input, weight and bias."""
    places = math.prod(input.shape[2:])
    return _backward(g, input, weight, input.shape[1] // num_groups * places, places, eps, True)


def _rows(
    input: Any, weight: Any, bias: Any, length: int, repeat: int, eps: float, centred: bool
) -> Any:
    weights = _weights(0, 1) if weight is None else _weights(weight.size, repeat)
    return _normalized(input, weight, bias, length, weights, eps, centred)


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
        "normalization_layer", "normalize_rows_backward", name_of(input), rows, arguments
    )
    return result, (gradient, array, statistics)


def _computed(array: Any) -> Any:
    return np.dtype(np.float64 if array.dtype == np.float64 else np.float32)


def _backward(
    g: Any, input: Any, weight: Any, length: int, repeat: int, eps: float, centred: bool
) -> tuple[Any, Any, Any]:
    """Return the gradients of input, weights and biases; the last two are empty without weights."""
    if weight is None:
        result, _ = _gradient(g, input, None, length, _weights(0, 1), eps, centred)
        return result, cp.empty(0, input.dtype), cp.empty(0, input.dtype)
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
