"""Kernels that make and copy arrays."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import ArrayApiBackend, DType, Number, Shape, wrap_integer

from .. import _mlx
from .._mlx import mx
from ..dtypes import DTYPES, REALS


def build(plugin: ArrayApiBackend) -> None:
    """Add these kernels to the plugin."""
    natives = plugin.runtime.natives

    @plugin.kernel(dtypes=DTYPES)
    def fill_new(shape: Shape, value: Number, dtype: DType) -> Any:
        _mlx.thread.ready  # noqa: B018
        number = wrap_integer(value, dtype)
        if isinstance(number, int) and abs(number) >= 1 << 31:
            return mx.broadcast_to(whole(number, natives[dtype]), shape)
        return mx.full(shape, mx.array(number, dtype=natives[dtype]))

    @plugin.kernel(dtypes=REALS)
    def arange_new(start: Number, step: Number, count: int, dtype: DType) -> Any:
        _mlx.thread.ready  # noqa: B018
        if isinstance(start, int) and isinstance(step, int):
            numbers = mx.arange(count, dtype=mx.int64)
            return (numbers * whole(step, mx.int64) + whole(start, mx.int64)).astype(natives[dtype])
        return (mx.arange(count, dtype=mx.float32) * step + start).astype(natives[dtype])


def whole(number: int, native: Any) -> Any:
    """Return an integer of 64 bits, which MLX makes from a Python number of fewer alone."""
    high, low = divmod(number % (1 << 64), 1 << 32)
    wide = mx.array([low, high], dtype=mx.uint32)
    return mx.view(wide, mx.uint64)[0].astype(native)
