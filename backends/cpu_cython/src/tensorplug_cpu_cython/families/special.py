"""Kernels of modified Bessel functions and of trigamma; other Bessel functions are left to SciPy."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tensorplug.plugin import DType, KernelTable, kernel_below

from .._dtypes import FLOATS, NATIVES
from ..fused import Fused


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    loops = {name: Fused(name).call for name in ("i0", "i0e", "i1", "i1e")}
    dtypes: dict[np.dtype[Any], DType] = {NATIVES[dtype]: dtype for dtype in FLOATS}
    trigamma = Fused("trigamma").call

    @cache
    def below(native: np.dtype[Any]) -> Any:
        return kernel_below("bessel", "cpu", dtypes[native], "cpu_cython")

    @table.kernel(dtypes=FLOATS)
    def bessel(input: Any, function: str) -> Any:
        loop = loops.get(function)
        return below(input.dtype)(input, function) if loop is None else loop((input,))

    @table.kernel("_trigamma", dtypes=FLOATS)
    def trigamma_of(input: Any) -> Any:
        return trigamma((input,))
