"""Fourier transforms by SciPy's compiled module, without the functions around it."""

from __future__ import annotations

import functools
from importlib import import_module
from typing import Any

from tensorplug.plugin import KernelTable

from .._dtypes import COMPLEX, SINGLE_AND_DOUBLE
from ..below import below


@functools.cache
def _library() -> Any:
    """Return the module, on first use: SciPy takes long to import; None where it is arranged otherwise."""
    try:
        return import_module("scipy.fft._pocketfft.pypocketfft")
    except ImportError:
        return None


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`.

    Normalizations have the same numbers here and there: the factors 1, 1 / sqrt(n) and 1 / n, whatever the
    direction.
    """
    c2c_below, r2c_below, c2r_below = below("fft_c2c"), below("fft_r2c"), below("fft_c2r")

    @table.kernel(dtypes=COMPLEX)
    def fft_c2c(input: Any, dim: Any, normalization: int, forward: bool) -> Any:
        found = _library() if input.size else None
        if found is None:
            return c2c_below(input, dim, normalization, forward)
        return found.c2c(input, dim, forward, normalization, None, 1)

    @table.kernel(dtypes=SINGLE_AND_DOUBLE)
    def fft_r2c(input: Any, dim: Any, normalization: int) -> Any:
        found = _library() if input.size else None
        if found is None:
            return r2c_below(input, dim, normalization)
        return found.r2c(input, dim, True, normalization, None, 1)

    @table.kernel(dtypes=COMPLEX)
    def fft_c2r(input: Any, dim: Any, normalization: int, last: int) -> Any:
        found = _library() if input.size else None
        if found is None:
            return c2r_below(input, dim, normalization, last)
        return found.c2r(input, dim, last, False, normalization, None, 1)
