"""Kernels of softmax and log-softmax."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import KernelTable

from .. import rows
from .._dtypes import FLOATS, shared_kernel


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    for op, function in (("_softmax", rows.softmax), ("_log_softmax", rows.log_softmax)):
        table.add(op, _of_dimensions(function, shared_kernel(op)), dtypes=FLOATS)
    table.add("_softmax_gradient", rows.softmax_gradient, dtypes=FLOATS)
    table.add("_log_softmax_gradient", rows.log_softmax_gradient, dtypes=FLOATS)


def _of_dimensions(function: Any, numberlike: Any) -> Any:
    def kernel(input: Any, dim: int) -> Any:
        return function(input, dim) if input.ndim else numberlike(input, dim)

    return kernel
