"""Kernels that roll and flip."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import ALL_DTYPES, KernelTable, Shape
from tensorplug.plugin.array_kernels.rearranging import flipped

from .. import copying, pointwise


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    table.add("roll", copying.roll, dtypes=ALL_DTYPES)

    @table.kernel()
    def flip(input: Any, dims: Shape) -> Any:
        return flipped(input, dims, pointwise.clone)
