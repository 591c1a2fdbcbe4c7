"""Kernels of Fourier transforms."""

from __future__ import annotations

from typing import Any

from tensorplug.core.tensor.shapes import Shape

from ..tables import KernelTable
from .namespace import ArrayNamespace

# The library's name for the factors 1, 1 / sqrt(n) and 1 / n, which depends on the direction.
_FORWARD = ("backward", "ortho", "forward")
_BACKWARD = ("forward", "ortho", "backward")


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    xp = namespace.xp

    @table.kernel()
    def fft_c2c(input: Any, dim: Shape, normalization: int, forward: bool) -> Any:
        if not input.size:
            return xp.zeros(input.shape, input.dtype)
        if forward:
            found = xp.fft.fftn(input, axes=dim, norm=_FORWARD[normalization])
        else:
            found = xp.fft.ifftn(input, axes=dim, norm=_BACKWARD[normalization])
        return xp.ascontiguousarray(found)

    @table.kernel()
    def fft_r2c(input: Any, dim: Shape, normalization: int) -> Any:
        if not input.size:
            shape = list(input.shape)
            shape[dim[-1]] = shape[dim[-1]] // 2 + 1
            return xp.zeros(shape, xp.result_type(input.dtype, xp.complex64))
        return xp.ascontiguousarray(xp.fft.rfftn(input, axes=dim, norm=_FORWARD[normalization]))

    @table.kernel()
    def fft_c2r(input: Any, dim: Shape, normalization: int, last: int) -> Any:
        sizes = [input.shape[d] for d in dim[:-1]] + [last]
        if not input.size:
            shape = list(input.shape)
            shape[dim[-1]] = last
            return xp.zeros(shape, input.real.dtype)
        return xp.ascontiguousarray(
            xp.fft.irfftn(input, s=sizes, axes=dim, norm=_BACKWARD[normalization])
        )
