"""Fourier transforms by SciPy's compiled module, without the functions around it."""

from __future__ import annotations

import functools
from importlib import import_module
from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable

from .._dtypes import COMPLEX, SINGLE_AND_DOUBLE
from ..allocator import empty
from ..below import below

#: The dtypes of complex numbers by those of their parts, and the other way.
_OTHER = {
    np.dtype(one): np.dtype(other)
    for pair in (("f4", "c8"), ("f8", "c16"))
    for one, other in (pair, pair[::-1])
}


@functools.cache
def _library() -> Any:
    """Return the module, on first use: SciPy takes long to import; None where it is arranged otherwise."""
    try:
        return import_module("scipy.fft._pocketfft.pypocketfft")
    except ImportError:
        return None


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`.

    Results are in memory of the allocator: of new pages each would be a fault.

    Normalizations have the same numbers here and there: the factors 1, 1 / sqrt(n) and 1 / n, whatever the
    direction.
    """
    c2c_below, r2c_below, c2r_below = below("fft_c2c"), below("fft_r2c"), below("fft_c2r")

    @table.kernel(dtypes=COMPLEX)
    def fft_c2c(input: Any, dim: Any, normalization: int, forward: bool) -> Any:
        found = _library() if input.size else None
        if found is None:
            return c2c_below(input, dim, normalization, forward)
        return found.c2c(input, dim, forward, normalization, empty(input.shape, input.dtype), 1)

    @table.kernel(dtypes=SINGLE_AND_DOUBLE)
    def fft_r2c(input: Any, dim: Any, normalization: int) -> Any:
        found = _library() if input.size else None
        if found is None:
            return r2c_below(input, dim, normalization)
        last = dim[-1]
        result = empty(_resized(input, last, input.shape[last] // 2 + 1), _OTHER[input.dtype])
        return found.r2c(input, dim, True, normalization, result, 1)

    @table.kernel(dtypes=COMPLEX)
    def fft_c2r(input: Any, dim: Any, normalization: int, last: int) -> Any:
        found = _library() if input.size else None
        if found is None:
            return c2r_below(input, dim, normalization, last)
        result = empty(_resized(input, dim[-1], last), _OTHER[input.dtype])
        return found.c2r(input, dim, last, False, normalization, result, 1)


def _resized(input: Any, dim: int, size: int) -> tuple[int, ...]:
    shape = list(input.shape)
    shape[dim] = size
    return tuple(shape)
