"""Running elements, without CuPy's functions that treat NaN or infinities otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorplug.plugin import COMPLEXES, KernelTable, deterministic_wanted
from tensorplug.plugin.array_kernels import ArrayNamespace
from tensorplug.plugin.array_kernels.cumulative import scan

from .._cupy import cp
from ..dtypes import HALVES, SINGLE_AND_DOUBLE
from .pointwise import log_of_sum


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add these kernels to `table`, above the shared ones."""
    shared = {kernel.op: kernel.function for kernel in table.kernels if kernel.dtypes is None}
    for op, combine in (("cumsum", "add"), ("cumprod", "multiply")):
        either = _repeatable(shared[op], combine)
        table.add(op, either, dtypes=(*SINGLE_AND_DOUBLE, *COMPLEXES), priority=1)
        table.add(op, namespace.through_float32(either), dtypes=HALVES, priority=1)
    table.add("logcumsumexp", logcumsumexp, dtypes=SINGLE_AND_DOUBLE, priority=1)
    table.add("logcumsumexp", namespace.through_float32(logcumsumexp), dtypes=HALVES, priority=1)


def logcumsumexp(input: Any, dim: int) -> Any:
    """Return the logarithms of the running sums of exponentials."""
    return scan(cp, log_of_sum, input, dim)


def _repeatable(native: Callable[..., Any], combine: str) -> Callable[..., Any]:
    """Return a kernel that is the library's own, and a scan where determinism is wanted.

    CUB's scans take up what neighbouring blocks have so far, which differs from run to run
    (https://nvidia.github.io/cccl/cub/api/structcub_1_1DeviceScan.html).
    """

    def kernel(input: Any, dim: int) -> Any:
        if deterministic_wanted():
            return scan(cp, getattr(cp, combine), input, dim)
        return native(input, dim)

    return kernel
