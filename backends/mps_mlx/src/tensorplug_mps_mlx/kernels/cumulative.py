"""Kernels that go along one dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorplug.plugin import ArrayApiBackend

from .._mlx import mx
from ..dtypes import FLOAT32, HALVES, INTEGERS
from .halves import through_float32


def _running(function: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(input: Any, dim: int) -> Any:
        if not input.ndim or not input.size:
            return input
        return function(input, axis=dim).astype(input.dtype)

    return kernel


def build(plugin: ArrayApiBackend) -> None:
    """Add these kernels to the plugin."""
    for op, function in (("cumsum", mx.cumsum), ("cumprod", mx.cumprod)):
        plugin.kernel(op, dtypes=(*INTEGERS, FLOAT32))(_running(function))
        plugin.kernel(op, dtypes=HALVES)(through_float32(_running(function)))
    logcumsumexp = _running(mx.logcumsumexp)
    plugin.kernel("logcumsumexp", dtypes=(FLOAT32,))(logcumsumexp)
    plugin.kernel("logcumsumexp", dtypes=HALVES)(through_float32(logcumsumexp))
