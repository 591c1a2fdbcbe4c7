"""Kernels of core's reductions."""

from __future__ import annotations

from tensorplug.plugin import KernelTable

from .. import reductions
from .._dtypes import NUMBERED, shared_kernel

_KINDS = {
    "sum": (reductions.SUM, False),
    "mean": (reductions.SUM, True),
    "prod": (reductions.PROD, False),
    "amax": (reductions.MAX, False),
    "amin": (reductions.MIN, False),
}


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    for op, (kind, is_mean) in _KINDS.items():
        dtypes = [NUMBERED[number] for number in reductions.types_of(kind)]
        if is_mean:
            dtypes = [dtype for dtype in dtypes if dtype.is_floating_point]
        kernel = reductions.Reduction(kind, shared_kernel(op), is_mean)
        table.add(op, kernel.call, dtypes=dtypes)
    dtypes = [NUMBERED[number] for number in reductions.places_types()]
    for kind, op in enumerate(("argmax", "argmin")):
        table.add(op, reductions.Place(kind, shared_kernel(op)).call, dtypes=dtypes)
