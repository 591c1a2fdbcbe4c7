"""Kernels of normalization over the last dimensions: MLX's own, with their own gradients."""

from __future__ import annotations

import math
from typing import Any

from tensorplug.plugin import ArrayApiBackend, Shape

from .._mlx import mx
from ..dtypes import FLOATS


def _rows(array: Any, length: int) -> Any:
    return mx.reshape(array, (-1, length))


def _flat(weight: Any | None) -> Any | None:
    return None if weight is None else mx.reshape(weight, (-1,))


def layer_norm(input: Any, normalized_shape: Shape, weight: Any, bias: Any, eps: float) -> Any:
    """Return the input standardised over its last dimensions."""
    if not input.size:
        return input
    rows = _rows(input, math.prod(normalized_shape))
    return mx.reshape(mx.fast.layer_norm(rows, _flat(weight), _flat(bias), eps), input.shape)


def rms_norm(input: Any, normalized_shape: Shape, weight: Any, eps: float) -> Any:
    """Return the input divided by its root mean square over its last dimensions."""
    if not input.size:
        return input
    rows = _rows(input, math.prod(normalized_shape))
    return mx.reshape(mx.fast.rms_norm(rows, _flat(weight), eps), input.shape)


def _none(weight: Any | None, input: Any) -> Any:
    return mx.zeros(0 if weight is None else weight.shape, dtype=input.dtype)


def layer_norm_backward(
    g: Any, input: Any, normalized_shape: Shape, weight: Any, eps: float
) -> tuple[Any, Any, Any]:
    """Return the gradients of input, weight and bias; without a weight the last two are empty."""
    if not input.size:
        return g, _none(weight, input), _none(weight, input)
    length = math.prod(normalized_shape)
    rows, gradient = _rows(input, length), _rows(g, length)
    if weight is None:
        (result,) = mx.vjp(lambda x: mx.fast.layer_norm(x, None, None, eps), [rows], [gradient])[1]
        return mx.reshape(result, input.shape), _none(None, input), _none(None, input)
    flat = _flat(weight)
    results = mx.vjp(
        lambda x, w, b: mx.fast.layer_norm(x, w, b, eps),
        [rows, flat, mx.zeros_like(flat)],
        [gradient],
    )[1]
    shapes = (input.shape, weight.shape, weight.shape)
    first, second, third = map(mx.reshape, results, shapes)
    return first, second, third


def rms_norm_backward(
    g: Any, input: Any, normalized_shape: Shape, weight: Any, eps: float
) -> tuple[Any, Any]:
    """Return the gradients of input and weight; without a weight the last is empty."""
    if not input.size:
        return g, _none(weight, input)
    length = math.prod(normalized_shape)
    rows, gradient = _rows(input, length), _rows(g, length)
    if weight is None:
        (result,) = mx.vjp(lambda x: mx.fast.rms_norm(x, None, eps), [rows], [gradient])[1]
        return mx.reshape(result, input.shape), _none(None, input)
    results = mx.vjp(lambda x, w: mx.fast.rms_norm(x, w, eps), [rows, _flat(weight)], [gradient])[1]
    return mx.reshape(results[0], input.shape), mx.reshape(results[1], weight.shape)


def build(plugin: ArrayApiBackend) -> None:
    """Add these kernels to the plugin."""
    for function in (layer_norm, layer_norm_backward, rms_norm, rms_norm_backward):
        plugin.kernel(dtypes=FLOATS)(function)
