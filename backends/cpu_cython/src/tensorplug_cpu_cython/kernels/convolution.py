"""Convolutions, by oneDNN where it is installed, some by kernels of our own."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorplug.plugin import DType, KernelTable, dtype_named

from .. import convolution_columns, convolution_depthwise, pointwise
from .._dtypes import WHOLE
from ..below import below
from ..halves import HALVES, in_single
from ..library import onednn

_CONVOLUTIONS = ("convolution", "convolution_input", "convolution_weight")


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    single = [dtype_named("float32")]
    own: list[DType] = []  # the halves that oneDNN computes itself: which, the processor says
    if onednn is None:
        kernels = {name: _or_below(convolution_depthwise, name) for name in _CONVOLUTIONS}
    else:
        from .. import convolution

        kernels = {name: getattr(convolution, name) for name in _CONVOLUTIONS}
        own = [dtype_named("bfloat16")] if onednn.has_bf16 else own
        for name in _CONVOLUTIONS:
            onednn.fallbacks[name] = below(name)
            for half in own:
                table.add(name, getattr(onednn, name), dtypes=[half])
    for name, kernel in kernels.items():
        table.add(name, kernel, dtypes=single)
        table.add(name, _or_below(convolution_columns, name), dtypes=[dtype_named("float64")])
        table.add(name, _of_integers(name), dtypes=WHOLE)
        for half in HALVES:
            if half not in own:
                table.add(name, in_single(kernel), dtypes=[half])


def _or_below(module: Any, name: str) -> Any:
    """Return a module's kernel, which leaves what it returns None for to the one below."""
    compiled, lower = getattr(module, name), below(name)

    def convolve(*arguments: Any) -> Any:
        found = compiled(*arguments)
        return lower(*arguments) if found is None else found

    return convolve


_LONG = np.dtype(np.int64)
_EXACT = ((2**24, np.dtype(np.float32)), (2**53, np.dtype(np.float64)))


def _of_integers(name: str) -> Any:
    """Return a kernel that computes in floats that have all of the sums exactly: no BLAS takes integers."""
    lower, by_columns = below(name), _or_below(convolution_columns, name)

    def convolve(first: Any, second: Any, *rest: Any) -> Any:
        arrays = [first, second, *[one for one in rest if isinstance(one, np.ndarray)]]  # a bias
        if not all([array.size for array in arrays]):
            return lower(first, second, *rest)
        most = [_largest(array) for array in arrays]
        sums = most[0] * most[1] * min(first.size, second.size) + sum(most[2:])
        for limit, dtype in _EXACT:
            if sums < limit:
                wide = [pointwise.cast(array, dtype) for array in arrays]
                found = by_columns(*wide, *rest[len(arrays) - 2 :])
                return pointwise.cast(pointwise.cast(found, _LONG), first.dtype)
        return lower(first, second, *rest)

    return convolve


def _largest(array: Any) -> int:
    """Return the largest magnitude there is."""
    return max(-int(array.min()), int(array.max()))
