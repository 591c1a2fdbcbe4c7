"""Selection by a mask."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""

    @table.kernel()
    def masked_select(input: np.ndarray[Any, Any], mask: np.ndarray[Any, Any]) -> Any:
        return input[mask]
