"""Attention of half precision: by cuDNN where it can, else by products of float32."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorplug.plugin import KernelTable

from .._cupy import cp
from ..dtypes import HALVES
from ..libraries import cudnn_attention
from .matmul import matmul

_MOST = -3.0e4  # added to a score it makes the weight zero, and is a number in both half precisions


def build(table: KernelTable) -> None:
    """Add these kernels to `table`; float32, for which cuDNN has none, is left to the ops' bodies."""
    for function in (
        scaled_dot_product_flash_attention,
        scaled_dot_product_flash_attention_backward,
    ):
        table.add(function.__name__, function, dtypes=HALVES)


def scaled_dot_product_flash_attention(
    inputs: Sequence[Any], mask: Any | None, is_causal: bool, scale: float
) -> tuple[Any, Any]:
    """Return the attended values, and the logarithms of the softmax's divisors in float32."""
    query, key, value = inputs
    batch, length = query.shape[:-2], query.shape[-2]
    if not query.size * key.size * value.size:
        output = cp.zeros((*batch, length, value.shape[-1]), query.dtype)
        return output, _products_total(query, key, mask, is_causal, scale)
    output = _empty_rows(batch, length, value.shape[-1], query.dtype)
    logsumexp = cp.empty((*batch, length), "f")
    finite, blocked = _finite_mask(mask, query, key)
    arrays = [_heads(array) for array in (query, key, value, output)]
    total = logsumexp.reshape(*arrays[0].shape[:3], 1)
    if not cudnn_attention.forward((*arrays, total), finite, is_causal, scale):
        return _by_products(inputs, mask, is_causal, scale)
    if blocked is not None:
        _hide(output, logsumexp, blocked)
    return output, logsumexp


def scaled_dot_product_flash_attention_backward(
    g_output: Any,
    inputs: Sequence[Any],
    mask: Any | None,
    output: Any,
    logsumexp: Any,
    is_causal: bool,
    scale: float,
) -> tuple[Any, Any, Any]:
    """Return the gradients of query, key and value."""
    query, key, value = inputs
    batch = query.shape[:-2]
    if query.size * key.size * value.size:
        finite, blocked = _finite_mask(mask, query, key)
        total, gradient = logsumexp, g_output
        if blocked is not None:
            # A row with nothing to see: a finite total makes its weights zero, and nothing flows back.
            total = cp.where(blocked, cp.zeros((), "f"), logsumexp)
            gradient = _where_not(blocked[..., None], g_output)
        results = [
            _empty_rows(batch, array.shape[-2], array.shape[-1], array.dtype) for array in inputs
        ]
        heads = [_heads(array) for array in (query, key, value, output, gradient)]
        total = cp.ascontiguousarray(total).reshape(*heads[0].shape[:3], 1)
        targets = [_heads(array) for array in results]
        if cudnn_attention.backward((*heads, total), targets, finite, is_causal, scale):
            return results[0], results[1], results[2]
    return _gradient_by_products(g_output, inputs, mask, output, logsumexp, is_causal, scale)


# --- layouts and masks ----------------------------------------------------------------------------


def _empty_rows(batch: tuple[int, ...], length: int, size: int, dtype: Any) -> Any:
    """Return a new array (*batch, length, size), with the heads of a position beside each other."""
    if len(batch) != 2:
        return cp.empty((*batch, length, size), dtype)
    return cp.empty((batch[0], length, batch[1], size), dtype).transpose(0, 2, 1, 3)


def _heads(array: Any) -> Any:
    """Return (batch, heads, length, size) over the same memory if it can be, rows without gaps."""
    if array.ndim < 4:
        array = array[(None,) * (4 - array.ndim)]
    elif array.ndim > 4:
        array = array.reshape(math.prod(array.shape[:-3]), *array.shape[-3:])
    return array if array.strides[-1] == array.itemsize else cp.ascontiguousarray(array)


def _finite_mask(mask: Any | None, query: Any, key: Any) -> tuple[Any | None, Any | None]:
    """Return what is added to the scores, without infinities, and which rows have nothing to see."""
    if mask is None:
        return None, None
    if mask.dtype == bool:
        allowed = mask
        numbers = cp.where(mask, cp.float32(0), cp.float32(_MOST))
    else:
        wide = mask.astype("f")
        allowed = wide != -math.inf
        numbers = cp.maximum(wide, cp.float32(_MOST))
    full = (*query.shape[:-2], query.shape[-2], key.shape[-2])
    blocked = cp.broadcast_to(~allowed.any(-1), full[:-1])
    # Rows and columns have to be there; batch and heads may be of size 1.
    numbers = numbers[(None,) * (len(full) - numbers.ndim)]
    numbers = cp.broadcast_to(numbers, (*numbers.shape[:-2], *full[-2:]))
    if len(full) > 4:
        numbers = cp.broadcast_to(numbers, full)
    return _heads(cp.ascontiguousarray(numbers.astype(query.dtype))), blocked


def _hide(output: Any, logsumexp: Any, blocked: Any) -> None:
    """Write what a row with nothing to see comes to."""
    output[...] = _where_not(blocked[..., None], output)
    logsumexp[...] = cp.where(blocked, cp.float32(-math.inf), logsumexp)


def _where_not(hidden: Any, array: Any) -> Any:
    """Return an array of half precision with zeros where something is hidden, by its bits."""
    return cp.where(hidden, cp.uint16(0), array.view("u2")).view(array.dtype)


# --- without cuDNN --------------------------------------------------------------------------------


def _scores(query: Any, key: Any, mask: Any | None, is_causal: bool, scale: float) -> Any:
    scores = matmul(query.astype("f") * cp.float32(scale), key.astype("f").swapaxes(-1, -2))
    if is_causal:
        mask = cp.tri(query.shape[-2], key.shape[-2], dtype=bool)
    if mask is None:
        return scores
    if mask.dtype == bool:
        return cp.where(mask, scores, cp.float32(-math.inf))
    return scores + mask.astype("f")


def _total(scores: Any) -> Any:
    """Return the logarithm of the sum of exponentials, minus infinity of nothing."""
    if not scores.shape[-1]:
        return cp.full(scores.shape[:-1], -math.inf, "f")
    peak = scores.max(-1)
    peak = cp.where(peak == -math.inf, cp.float32(0), peak)
    return cp.log(cp.exp(scores - peak[..., None]).sum(-1)) + peak


def _weights(scores: Any, total: Any) -> Any:
    return cp.exp(scores - cp.where(total == -math.inf, cp.float32(0), total)[..., None])


def _products_total(query: Any, key: Any, mask: Any, is_causal: bool, scale: float) -> Any:
    return _total(_scores(query, key, mask, is_causal, scale))


def _by_products(
    inputs: Sequence[Any], mask: Any | None, is_causal: bool, scale: float
) -> tuple[Any, Any]:
    query, key, value = inputs
    scores = _scores(query, key, mask, is_causal, scale)
    total = _total(scores)
    output = matmul(_weights(scores, total), value.astype("f"))
    return output.astype(query.dtype), total


def _gradient_by_products(
    g_output: Any,
    inputs: Sequence[Any],
    mask: Any | None,
    output: Any,
    logsumexp: Any,
    is_causal: bool,
    scale: float,
) -> tuple[Any, Any, Any]:
    query, key, value = [array.astype("f") for array in inputs]
    g, result = g_output.astype("f"), output.astype("f")
    weights = _weights(_scores(query, key, mask, is_causal, scale), logsumexp)
    along = (g * result).sum(-1)
    inner = matmul(g, value.swapaxes(-1, -2)) - along[..., None]
    g_scores = weights * inner * cp.float32(scale)
    gradients = (
        matmul(g_scores, key),
        matmul(g_scores.swapaxes(-1, -2), query),
        matmul(weights.swapaxes(-1, -2), g),
    )
    dtype = g_output.dtype
    return gradients[0].astype(dtype), gradients[1].astype(dtype), gradients[2].astype(dtype)
