"""Random bits, and numbers of them in one pass."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import DType, KernelTable, Shape

from .. import random
from .._dtypes import NATIVES

#: Bits of a significand.
KEPT = {"float32": 24, "float16": 11, "bfloat16": 8}


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""

    @table.kernel()
    def philox_bits(shape: Shape, seed: int, offset: int) -> Any:
        return random.philox_bits(tuple(shape), seed, offset)

    # In single precision, as the ops' own bodies.
    @table.kernel()
    def uniform_of_words(words: Any, dtype: DType) -> Any:
        kept = KEPT[dtype.name]
        return random.uniform_of_words(words, kept).astype(NATIVES[dtype], copy=False)

    @table.kernel()
    def normal_of_words(radius: Any, angle: Any, dtype: DType) -> Any:
        return random.normal_of_words(radius, angle).astype(NATIVES[dtype], copy=False)
