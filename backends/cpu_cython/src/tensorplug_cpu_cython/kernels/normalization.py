"""Kernels of normalization."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable, Shape

from .. import normalization_batch, normalization_layer, normalization_response
from .._dtypes import FLOATS, SINGLE_AND_DOUBLE
from ..halves import HALVES, add_floats, in_single_writing


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    for function in (
        layer_norm,
        layer_norm_backward,
        rms_norm,
        rms_norm_backward,
        group_norm,
        group_norm_backward,
        native_batch_norm,
        native_batch_norm_backward,
        batch_norm_inference,
        batch_norm_inference_backward,
    ):
        table.add(function.__name__, function, dtypes=FLOATS)
    for name in ("local_response_norm", "local_response_norm_backward"):
        add_floats(table, name, getattr(normalization_response, name))
    table.add("row_statistics", normalization_layer.row_statistics, dtypes=FLOATS)
    table.add("normalize", normalization_layer.unit_vectors, dtypes=FLOATS)
    table.add("normalize_backward", normalization_layer.unit_vectors_gradient, dtypes=FLOATS)
    update = normalization_layer.update_statistics
    table.add("batch_norm_update_stats", update, dtypes=SINGLE_AND_DOUBLE)
    table.add("batch_norm_update_stats", in_single_writing(update, 2), dtypes=HALVES)


# --- rows ------------------------------------------------------------------------------------------


def layer_norm(input: Any, normalized_shape: Shape, weight: Any, bias: Any, eps: float) -> Any:
    """Return the input standardised over its last dimensions."""
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
    """Return the input standardised over groups of channels."""
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
    if weight is None:
        return normalization_layer.row_norm(input, length, eps, centred)
    inputs = [input, weight] if bias is None else [input, weight, bias]
    return normalization_layer.affine_row_norm(inputs, length, repeat, eps, centred)


def _backward(
    g: Any, input: Any, weight: Any, length: int, repeat: int, eps: float, centred: bool
) -> tuple[Any, Any, Any]:
    if weight is None:
        g_input = normalization_layer.row_norm_backward(g, input, length, eps, centred)
        return g_input, _nothing(input), _nothing(input)
    return normalization_layer.affine_row_norm_backward(
        g, input, weight, length, repeat, eps, centred
    )


def _nothing(array: Any) -> Any:
    return np.empty(0, array.dtype)


# --- batches ---------------------------------------------------------------------------------------
# The compiled ones take numbers of the images' dtype, and of half-precision images those in float32.


def native_batch_norm(input: Any, weight: Any, bias: Any, eps: float) -> tuple[Any, Any, Any]:
    """Return images standardised per channel, the means, and one over the deviations."""
    if weight is None or bias is None:
        weight, bias = np.ones(input.shape[1], input.dtype), np.zeros(input.shape[1], input.dtype)
    return normalization_batch.batch_normalize([input, weight, bias], eps)


def native_batch_norm_backward(
    g_output: Any, g_mean: Any, g_rstd: Any, input: Any, weight: Any, mean: Any, rstd: Any
) -> tuple[Any, Any, Any]:
    """Return the gradients of images, weight and bias."""
    given = np.ones(mean.shape, input.dtype) if weight is None else weight
    result, g_weight, g_bias = normalization_batch.batch_normalize_backward(
        g_output, g_mean, g_rstd, input, given, mean, rstd
    )
    if weight is None:
        g_weight, g_bias = _nothing(input), _nothing(input)
    return result, g_weight, g_bias


def batch_norm_inference(
    input: Any, running_mean: Any, running_var: Any, weight: Any, bias: Any, eps: float
) -> Any:
    """Return images standardised by given statistics."""
    if input.dtype.itemsize == 2:
        statistics = (running_mean, running_var)
        return normalization_batch.half_by_statistics(input, *statistics, weight, bias, eps)
    numbers: Sequence[Any] = [running_mean, running_var]
    if weight is not None and bias is not None:
        numbers = [*numbers, weight, bias]
    image = input.astype(running_mean.dtype, copy=False)
    return normalization_layer.channel_norm([image, *numbers], eps).astype(input.dtype, copy=False)


def batch_norm_inference_backward(
    g: Any, input: Any, mean: Any, variance: Any, weight: Any, eps: float
) -> tuple[Any, Any, Any]:
    """Return the gradients of images, weight and bias."""
    gradient, image = [array.astype(mean.dtype, copy=False) for array in (g, input)]
    result, *sums = normalization_layer.channel_norm_backward(
        gradient, image, mean, variance, weight, eps
    )
    return result.astype(input.dtype, copy=False), sums[0], sums[1]
