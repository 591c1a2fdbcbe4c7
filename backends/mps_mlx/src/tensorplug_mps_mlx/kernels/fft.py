"""Kernels of Fourier transforms."""

from __future__ import annotations

import math
from typing import Any

from tensorplug.plugin import ArrayApiBackend, Shape

from .._mlx import mx
from ..dtypes import COMPLEX


def build(plugin: ArrayApiBackend) -> None:
    """Add these kernels to the plugin."""

    @plugin.kernel(dtypes=(COMPLEX,))
    def fft_c2c(input: Any, dim: Shape, normalization: int, forward: bool) -> Any:
        if not input.size or not dim:
            return input
        count = math.prod([input.shape[d] for d in dim])
        if forward:
            result, factor = mx.fft.fftn(input, axes=dim), (1.0, count**-0.5, 1 / count)
        else:
            result, factor = mx.fft.ifftn(input, axes=dim), (count, count**0.5, 1.0)
        return result if factor[normalization] == 1 else result * factor[normalization]
