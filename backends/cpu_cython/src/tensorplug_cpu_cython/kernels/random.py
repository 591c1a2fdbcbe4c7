"""Random bits."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import KernelTable, Shape

from .. import random


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""

    @table.kernel()
    def philox_bits(shape: Shape, seed: int, offset: int) -> Any:
        return random.philox_bits(tuple(shape), seed, offset)
