"""Kernels of matrix products."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import ArrayApiBackend

from .._mlx import mx
from ..dtypes import FLOATS


def build(plugin: ArrayApiBackend) -> None:
    """Add these kernels to the plugin."""
    plugin.kernel("matmul", dtypes=FLOATS)(mx.matmul)

    @plugin.kernel(dtypes=FLOATS)
    def linear(input: Any, weight: Any, bias: Any) -> Any:
        if bias is None:
            return mx.matmul(input, weight.T)
        return mx.addmm(bias, input, weight.T)
