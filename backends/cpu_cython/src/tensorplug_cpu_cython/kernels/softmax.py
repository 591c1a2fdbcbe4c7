"""Kernels of softmax and its kin."""

from __future__ import annotations

from tensorplug.plugin import KernelTable

from .. import softmax
from .._dtypes import FLOATS


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    for op in ("softmax", "log_softmax", "logsumexp"):
        table.add(op, getattr(softmax, op), dtypes=FLOATS)
    for op in ("softmax", "log_softmax"):
        table.add(f"{op}_backward", getattr(softmax, f"{op}_gradient"), dtypes=FLOATS)
