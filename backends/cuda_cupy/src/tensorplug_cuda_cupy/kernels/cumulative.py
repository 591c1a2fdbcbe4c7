"""Running elements, without CuPy's functions that treat NaN or infinities otherwise."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import KernelTable
from tensorplug.plugin.array_kernels import ArrayNamespace
from tensorplug.plugin.array_kernels.cumulative import scan

from .._cupy import cp
from ..dtypes import HALVES, SINGLE_AND_DOUBLE
from .pointwise import log_of_sum


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add these kernels to `table`, above the shared ones."""
    table.add("logcumsumexp", logcumsumexp, dtypes=SINGLE_AND_DOUBLE, priority=1)
    table.add("logcumsumexp", namespace.through_float32(logcumsumexp), dtypes=HALVES, priority=1)


def logcumsumexp(input: Any, dim: int) -> Any:
    """Return the logarithms of the running sums of exponentials."""
    return scan(cp, log_of_sum, input, dim)
