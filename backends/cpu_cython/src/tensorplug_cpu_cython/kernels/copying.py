"""Kernels that copy and convert."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import DType, KernelTable

from .. import copying, pointwise
from .._dtypes import NATIVES
from ..pointwise_regions import with_loop


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    table.add("clone", pointwise.clone)
    table.add("clone_strided", copying.clone_strided)
    table.add("copy", pointwise.copy, out=True)

    @table.kernel()
    def cast(input: Any, dtype: DType) -> Any:
        return pointwise.cast(input, NATIVES[dtype])

    with_loop(cast, lambda *arguments: (pointwise.cast, arguments[:1], ()))
