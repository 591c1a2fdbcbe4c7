"""Random bits, and numbers made of them."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import KernelTable, Shape, dtype_named

from .. import random
from ..below import below


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""

    @table.kernel()
    def philox_bits(shape: Shape, seed: int, offset: int) -> Any:
        return random.philox_bits(tuple(shape), seed, offset)

    words = (dtype_named("int64"),)
    table.add("uniform_of_words", random.uniform_kernel(below("uniform_of_words")), dtypes=words)
    table.add("normal_of_words", random.normal_kernel(below("normal_of_words")), dtypes=words)
