"""Kernels that roll and flip."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import ALL_DTYPES, KernelTable, Shape

from .. import copying, pointwise

_BACKWARDS, _FORWARDS = slice(None, None, -1), slice(None)


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    table.add("roll", copying.roll, dtypes=ALL_DTYPES)

    @table.kernel()
    def flip(input: Any, dims: Shape) -> Any:
        key = tuple([_BACKWARDS if d in dims else _FORWARDS for d in range(input.ndim)])
        return pointwise.clone(input[key])
