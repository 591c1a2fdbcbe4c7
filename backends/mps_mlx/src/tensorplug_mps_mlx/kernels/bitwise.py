"""Kernels of shifts: by a negative number or all bits they have a result of their own in torch."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import ArrayApiBackend

from .._mlx import mx
from ..dtypes import INTEGERS


def _outside(input: Any, other: Any) -> Any:
    return mx.logical_or(other < 0, other >= 8 * input.itemsize)


def bitwise_left_shift(input: Any, other: Any) -> Any:
    """Return the bits moved up."""
    outside = _outside(input, other)
    zero = mx.array(0, dtype=input.dtype)
    return mx.where(outside, zero, mx.left_shift(input, mx.where(outside, zero, other)))


def bitwise_right_shift(input: Any, other: Any) -> Any:
    """Return the bits moved down."""
    most = mx.array(8 * input.itemsize - 1, dtype=input.dtype)
    outside = _outside(input, other)
    moved = mx.right_shift(input, mx.where(outside, most, other))
    filled = mx.where(input < 0, mx.array(-1).astype(input.dtype), mx.array(0, dtype=input.dtype))
    return mx.where(outside, filled, moved)


def build(plugin: ArrayApiBackend) -> None:
    """Add these kernels to the plugin."""
    for function in (bitwise_left_shift, bitwise_right_shift):
        plugin.kernel(dtypes=INTEGERS)(function)
