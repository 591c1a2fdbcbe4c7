"""Random bits, and sums along a dimension."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import KernelTable, Shape, dtype_named

from .. import sequences
from .._dtypes import FLOATS


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    table.add("cumsum", sequences.cumsum, dtypes=(*FLOATS, dtype_named("int64")))

    @table.kernel()
    def philox_bits(shape: Shape, seed: int, offset: int) -> Any:
        return sequences.philox_bits(tuple(shape), seed, offset)
