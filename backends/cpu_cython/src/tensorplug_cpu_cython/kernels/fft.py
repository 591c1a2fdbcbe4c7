"""Fourier transforms by SciPy's compiled module, without the functions around it."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import KernelTable, dtype_named

from .._dtypes import SINGLE_AND_DOUBLE
from ..below import below

try:
    from scipy.fft._pocketfft import pypocketfft
except ImportError:  # another arrangement of SciPy: NumPy's functions serve
    pypocketfft = None

COMPLEX = tuple(map(dtype_named, ("complex64", "complex128")))


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`.

    Normalizations have the same numbers here and there: the factors 1, 1 / sqrt(n) and 1 / n, whatever the
    direction.
    """
    if pypocketfft is None:
        return
    c2c, r2c, c2r = pypocketfft.c2c, pypocketfft.r2c, pypocketfft.c2r
    c2c_below, r2c_below, c2r_below = below("fft_c2c"), below("fft_r2c"), below("fft_c2r")

    @table.kernel(dtypes=COMPLEX)
    def fft_c2c(input: Any, dim: Any, normalization: int, forward: bool) -> Any:
        if not input.size:
            return c2c_below(input, dim, normalization, forward)
        return c2c(input, dim, forward, normalization, None, 1)

    @table.kernel(dtypes=SINGLE_AND_DOUBLE)
    def fft_r2c(input: Any, dim: Any, normalization: int) -> Any:
        if not input.size:
            return r2c_below(input, dim, normalization)
        return r2c(input, dim, True, normalization, None, 1)

    @table.kernel(dtypes=COMPLEX)
    def fft_c2r(input: Any, dim: Any, normalization: int, last: int) -> Any:
        if not input.size:
            return c2r_below(input, dim, normalization, last)
        return c2r(input, dim, last, False, normalization, None, 1)
