"""Kernels of attention: MLX's own, which never holds the weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorplug.plugin import ArrayApiBackend

from .._mlx import mx
from ..dtypes import FLOATS


def _attend(query: Any, key: Any, value: Any, mask: Any, is_causal: bool, scale: float) -> Any:
    """Return the attended values; arrays are (*batch, length, width)."""
    batch = query.shape[:-2]
    four = (math.prod(batch[:-1]), batch[-1] if batch else 1)
    arrays = [mx.reshape(x, (*four, *x.shape[-2:])) for x in (query, key, value)]
    if mask is not None:
        shape = (*batch, query.shape[-2], key.shape[-2])
        mask = mx.reshape(mx.broadcast_to(mask, shape), (*four, *shape[-2:]))
        mask = mask if mask.dtype == mx.bool_ else mask.astype(query.dtype)
    chosen = "causal" if is_causal and query.shape[-2] == key.shape[-2] else mask
    if is_causal and chosen is None:
        chosen = mx.tri(query.shape[-2], key.shape[-2], dtype=mx.bool_)
    result = mx.fast.scaled_dot_product_attention(*arrays, scale=scale, mask=chosen)
    return mx.reshape(result, (*batch, *result.shape[-2:]))


def _divisors(query: Any, key: Any, mask: Any, is_causal: bool, scale: float) -> Any:
    """Return the logarithms of what the softmax divides by: computed if somebody asks for them."""
    scores = mx.matmul(query.astype(mx.float32) * scale, mx.swapaxes(key, -1, -2))
    if is_causal:
        mask = mx.tri(*scores.shape[-2:], dtype=mx.bool_)
    if mask is not None:
        scores = mx.where(mask, scores, -mx.inf) if mask.dtype == mx.bool_ else scores + mask
    return mx.logsumexp(scores, axis=-1)


def attention(
    inputs: Sequence[Any], mask: Any | None, is_causal: bool, scale: float
) -> tuple[Any, Any]:
    """Return the attended values, and the logarithms of the softmax's divisors in float32."""
    query, key, value = inputs
    if not query.size * key.size * value.size:
        shape = (*query.shape[:-1], value.shape[-1])
        total = mx.full(query.shape[:-1], -mx.inf, dtype=mx.float32)
        if key.shape[-2] and not query.shape[-1]:
            total = mx.full(query.shape[:-1], math.log(key.shape[-2]), dtype=mx.float32)
        return mx.zeros(shape, dtype=query.dtype), total
    total = _divisors(query, key, mask, is_causal, scale)
    output = _attend(query, key, value, mask, is_causal, scale)
    if mask is not None:  # a row with nothing to see is zero
        output = mx.where((total == -mx.inf)[..., None], mx.array(0, dtype=output.dtype), output)
    return output, total


def build(plugin: ArrayApiBackend) -> None:
    """Add these kernels to the plugin."""
    plugin.kernel("scaled_dot_product_flash_attention", dtypes=FLOATS)(attention)

    @plugin.kernel(dtypes=FLOATS)
    def scaled_dot_product_efficient_attention(
        inputs: Sequence[Any], mask: Any | None, is_causal: bool, scale: float
    ) -> tuple[Any, Any]:
        output, total = attention(inputs, mask, is_causal, scale)
        return output, total.astype(output.dtype)
