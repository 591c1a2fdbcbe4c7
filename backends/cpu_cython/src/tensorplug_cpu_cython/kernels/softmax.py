"""Kernels of softmax and its kin."""

from __future__ import annotations

from tensorplug.plugin import KernelTable

from .. import softmax
from .._dtypes import FLOATS


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    for op in ("softmax", "log_softmax", "softmax_gradient", "log_softmax_gradient", "logsumexp"):
        table.add(f"_{op}", getattr(softmax, op), dtypes=FLOATS)
