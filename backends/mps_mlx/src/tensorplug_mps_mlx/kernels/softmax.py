"""Kernels of softmax and its kin."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import ArrayApiBackend

from .._mlx import mx
from ..dtypes import FLOATS


def build(plugin: ArrayApiBackend) -> None:
    """Add these kernels to the plugin."""

    @plugin.kernel(dtypes=FLOATS)
    def softmax(input: Any, dim: int) -> Any:
        if not input.ndim:
            return softmax(mx.reshape(input, (1,)), 0).reshape(())
        if not input.size:
            return input
        return mx.softmax(input, axis=dim, precise=True)

    @plugin.kernel(dtypes=FLOATS)
    def log_softmax(input: Any, dim: int) -> Any:
        if not input.ndim or not input.size:
            return input - input
        wide = input.astype(mx.float32)
        return (wide - mx.logsumexp(wide, axis=dim, keepdims=True)).astype(input.dtype)

    @plugin.kernel(dtypes=FLOATS)
    def softmax_backward(g: Any, result: Any, dim: int) -> Any:
        if not result.size:
            return result
        axis = dim if result.ndim else None
        wide, weights = g.astype(mx.float32), result.astype(mx.float32)
        total = mx.sum(wide * weights, axis=axis, keepdims=True)
        return ((wide - total) * weights).reshape(result.shape).astype(result.dtype)

    @plugin.kernel(dtypes=FLOATS)
    def log_softmax_backward(g: Any, result: Any, dim: int) -> Any:
        if not result.size:
            return result
        axis = dim if result.ndim else None
        wide = g.astype(mx.float32)
        total = mx.sum(wide, axis=axis, keepdims=True)
        weights = mx.exp(result.astype(mx.float32))
        return (wide - weights * total).reshape(result.shape).astype(result.dtype)
