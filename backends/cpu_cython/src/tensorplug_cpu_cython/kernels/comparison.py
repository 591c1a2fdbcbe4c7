"""Kernels of comparisons of whole arrays; those by element are in :mod:`.pointwise`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable

from .. import pointwise
from .._dtypes import ELEMENTS


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    compare = pointwise.Binary("eq", np.equal).call

    @table.kernel(dtypes=ELEMENTS)
    def equal(input: Any, other: Any) -> bool:
        if input.dtype is not other.dtype:
            return bool((input == other).all())
        return 0 not in compare(input, other).tobytes()  # quicker than all() of few elements
