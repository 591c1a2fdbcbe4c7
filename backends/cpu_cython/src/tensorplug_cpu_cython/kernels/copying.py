"""Kernels that copy and convert."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorplug.plugin import DType, KernelTable

from .. import copying, pointwise
from .._dtypes import NATIVES
from ..below import below
from ..pointwise_regions import with_loop

_HALF, _SINGLE, _DOUBLE = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    table.add("clone", pointwise.clone)
    table.add("clone_strided", copying.clone_strided)
    table.add("copy", pointwise.copy, out=True)

    cast_below = below("cast")

    @table.kernel()
    def cast(input: Any, dtype: DType) -> Any:
        native = NATIVES.get(dtype)
        if native is None:  # floats of eight bits have no loops here
            return cast_below(input, dtype)
        given = input.dtype
        if given.kind == "c" and native.kind not in "cb":
            input = input.real
            given = input.dtype
        # NumPy converts half precision one by one; by way of float32 each of these is rounded once, too.
        if given is not native and (
            (given is _HALF and native is not _SINGLE)
            or (native is _HALF and given is not _SINGLE and given is not _DOUBLE)
        ):
            input = pointwise.cast(input, _SINGLE)
        return pointwise.cast(input, native)

    with_loop(cast, lambda *arguments: (pointwise.cast, arguments[:1], ()))
