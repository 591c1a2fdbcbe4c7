"""Kernels of elementary and special functions."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import ArrayApiBackend

from .._mlx import mx
from ..dtypes import FLOAT32, FLOATS, HALVES
from .arithmetic import is_negative
from .halves import through_float32


def copysign(input: Any, other: Any) -> Any:
    """Return the absolute values with the signs of others."""
    size = mx.abs(input)
    shape = mx.broadcast_shapes(input.shape, other.shape)
    return mx.where(is_negative(mx.broadcast_to(other, shape)), -size, size)


def build(plugin: ArrayApiBackend) -> None:
    """Add these kernels to the plugin."""
    plugin.kernel(dtypes=FLOATS)(copysign)
    for op, function in (
        ("sigmoid", mx.sigmoid),
        ("rsqrt", mx.rsqrt),
        ("erf", mx.erf),
        ("erfinv", mx.erfinv),
    ):
        plugin.kernel(op, dtypes=(FLOAT32,))(function)
        plugin.kernel(op, dtypes=HALVES)(through_float32(function))
