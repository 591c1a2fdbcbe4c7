"""Kernels that sort."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import ArrayApiBackend

from .._mlx import mx
from ..dtypes import BOOL, REALS


def build(plugin: ArrayApiBackend) -> None:
    """Add these kernels to the plugin."""

    @plugin.kernel(dtypes=(*REALS, BOOL))
    def argsort(input: Any, dim: int, descending: bool) -> Any:
        if not input.ndim or not input.size:
            return mx.zeros(input.shape, dtype=mx.int64)
        if input.dtype == mx.bool_:
            input = input.astype(mx.uint8)
        if not descending:
            return mx.argsort(input, axis=dim).astype(mx.int64)
        # Turned around twice: the ascending order of the mirrored array keeps equal elements in order.
        mirrored = mx.argsort(mx.flip(input, axis=dim), axis=dim).astype(mx.int64)
        return (input.shape[dim] - 1) - mx.flip(mirrored, axis=dim)
