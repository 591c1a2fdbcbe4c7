"""Kernels that copy and convert."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import DType, KernelTable

from .. import copying, pointwise
from .._dtypes import NATIVES
from ..below import below
from ..pointwise_regions import with_loop


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    table.add("clone", pointwise.clone)
    table.add("clone_strided", copying.clone_strided)
    table.add("copy", pointwise.copy, out=True)

    cast_below = below("cast")

    @table.kernel()
    def cast(input: Any, dtype: DType) -> Any:
        native = NATIVES.get(dtype)  # floats of eight bits have no loops here
        return cast_below(input, dtype) if native is None else pointwise.cast(input, native)

    with_loop(cast, lambda *arguments: (pointwise.cast, arguments[:1], ()))
