"""Attention: of half precision by cuDNN where it can, else by two products and a kernel between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable

from .. import sources
from .._cupy import cp
from ..dtypes import HALVES, SINGLE_AND_DOUBLE, name_of
from ..libraries import cudnn_attention
from .matmul import matmul

_MOST = -3.0e4  # added to a score it makes the weight zero, and is a number in both half precisions


def build(table: KernelTable) -> None:
    """Add these kernels to `table`; of half precision those that cuDNN takes."""
    forward = scaled_dot_product_efficient_attention
    backward = scaled_dot_product_efficient_attention_backward
    table.add(forward.__name__, forward, dtypes=SINGLE_AND_DOUBLE)
    table.add(backward.__name__, backward, dtypes=SINGLE_AND_DOUBLE)
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
        return _by_products(inputs, mask, is_causal, scale)
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


# --- by products ----------------------------------------------------------------------------------


def scaled_dot_product_efficient_attention(
    inputs: Sequence[Any], mask: Any | None, is_causal: bool, scale: float
) -> tuple[Any, Any]:
    """Return the attended values, and the logarithms of the softmax's divisors."""
    query, key, value = inputs
    scores = _products(query, key)
    scores, masks = _masked(scores, mask, is_causal)
    logsumexp = cp.empty(scores.shape[:-1], scores.dtype)
    if logsumexp.size:
        rows, size = np.int64(logsumexp.size), np.int64(scores.shape[-1])
        arguments = (scores, *masks[:2], logsumexp, rows, size, *masks[2:], np.float64(scale))
        name = name_of(scores)
        sources.launch("attention", "attention_weights", name, logsumexp.size, arguments)
    return matmul(scores, value), logsumexp


def scaled_dot_product_efficient_attention_backward(
    g_output: Any,
    g_logsumexp: Any,
    inputs: Sequence[Any],
    mask: Any | None,
    output: Any,
    logsumexp: Any,
    is_causal: bool,
    scale: float,
) -> tuple[Any, Any, Any]:
    """Return the gradients of query, key and value."""
    query, key, value = inputs
    scores, masks = _masked(_products(query, key), mask, is_causal)
    inner = _products(g_output, value)
    if inner.shape != scores.shape:
        inner = cp.ascontiguousarray(cp.broadcast_to(inner, scores.shape))
    shape = scores.shape[:-1]
    if scores.size:
        given = [
            cp.ascontiguousarray(cp.broadcast_to(array, (*shape, *array.shape[len(shape) :])))
            for array in (logsumexp, g_output, output, g_logsumexp)
        ]
        sizes = [np.int64(n) for n in (logsumexp.size, scores.shape[-1], output.shape[-1])]
        arguments = (scores, inner, *masks[:2], *given, *sizes, *masks[2:], np.float64(scale))
        sources.launch(
            "attention", "attention_gradient", name_of(scores), math.prod(shape), arguments
        )
    return (
        matmul(inner, key),
        matmul(inner.swapaxes(-1, -2), query),
        matmul(scores.swapaxes(-1, -2), g_output),
    )


def _products(rows: Any, columns: Any) -> Any:
    """Return the products of all rows of two arrays, row by row."""
    return cp.ascontiguousarray(matmul(rows, columns.swapaxes(-1, -2)))


def _masked(scores: Any, mask: Any | None, is_causal: bool) -> tuple[Any, tuple[Any, ...]]:
    """Return scores that can be written to, and the kernels' arguments of a mask: null where it is none."""
    length = np.int64(max(scores.shape[-2], 1))
    if is_causal or mask is None:
        return scores, (None, None, np.int64(1), length, np.int32(is_causal))
    whole = cp.broadcast_shapes(mask.shape, scores.shape)
    if whole != scores.shape:
        scores = cp.ascontiguousarray(cp.broadcast_to(scores, whole))
    own = mask.shape[:-2]
    shape = whole[-2:] if math.prod(own) == 1 else whole
    given: Any = mask.reshape(mask.shape[-2:]) if math.prod(own) == 1 and mask.ndim > 2 else mask
    allows = given.dtype == bool
    if not allows:
        given = given.astype(scores.dtype, copy=False)
    given = cp.ascontiguousarray(cp.broadcast_to(given, shape))
    rows = np.int64(max(math.prod(shape[:-1]), 1))
    masks = (given, None) if allows else (None, given)
    return scores, (*masks, rows, length, np.int32(0))


def _by_products(
    inputs: Sequence[Any], mask: Any | None, is_causal: bool, scale: float
) -> tuple[Any, Any]:
    wide = [array.astype("f") for array in inputs]
    output, total = scaled_dot_product_efficient_attention(wide, mask, is_causal, scale)
    return output.astype(inputs[0].dtype), total


def _gradient_by_products(
    g_output: Any,
    inputs: Sequence[Any],
    mask: Any | None,
    output: Any,
    logsumexp: Any,
    is_causal: bool,
    scale: float,
) -> tuple[Any, Any, Any]:
    wide = [array.astype("f") for array in inputs]
    g, result, none = g_output.astype("f"), output.astype("f"), cp.zeros(logsumexp.shape, "f")
    gradients = scaled_dot_product_efficient_attention_backward(
        g, none, wide, mask, result, logsumexp, is_causal, scale
    )
    dtype = g_output.dtype
    return gradients[0].astype(dtype), gradients[1].astype(dtype), gradients[2].astype(dtype)
