"""Kernels of embeddings."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import ArrayApiBackend

from .._mlx import mx
from ..dtypes import FLOATS
from .indexing import inside


def build(plugin: ArrayApiBackend) -> None:
    """Add these kernels to the plugin."""

    @plugin.kernel(dtypes=FLOATS)
    def embedding(
        weight: Any,
        input: Any,
        padding_idx: int | None,  # noqa: ARG001
        scale_grad_by_freq: bool,  # noqa: ARG001
    ) -> Any:
        if not weight.size or not input.size:
            return mx.zeros((*input.shape, *weight.shape[1:]), dtype=weight.dtype)
        return mx.take(weight, inside(input, weight.shape[0]), axis=0)

    @plugin.kernel(dtypes=FLOATS)
    def embedding_dense_backward(
        grad_output: Any,
        indices: Any,
        num_weights: int,
        padding_idx: int,
        scale_grad_by_freq: bool,
    ) -> Any:
        width = grad_output.shape[indices.ndim :]
        total = mx.zeros((num_weights, *width), dtype=mx.float32)
        if not grad_output.size or not num_weights:
            return total.astype(grad_output.dtype)
        rows = mx.reshape(inside(indices, num_weights), (-1,))
        wide = mx.reshape(grad_output, (rows.size, *width)).astype(mx.float32)
        share = mx.ones(rows.shape, dtype=mx.float32)
        if padding_idx >= 0:
            share = (rows != padding_idx).astype(mx.float32)
        if scale_grad_by_freq:
            count = mx.zeros((num_weights,), dtype=mx.float32).at[rows].add(mx.ones(rows.shape))
            share = share / count[rows]
        total = total.at[rows].add(wide * mx.reshape(share, (-1,) + (1,) * len(width)))
        return total.astype(grad_output.dtype)
