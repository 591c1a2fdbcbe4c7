"""Kernels of functions of representation and of whole numbers."""

from __future__ import annotations

from typing import Any

from tensorplug.core.device.dtypes import FLOATS

from ..tables import KernelTable
from .namespace import ArrayNamespace

_UNIVERSAL = {
    "copysign": "copysign",
    "gcd": "gcd",
}


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    xp = namespace.xp
    for op, name in _UNIVERSAL.items():
        table.add(op, getattr(xp, name), out=True)
    table.add("nextafter", xp.nextafter, dtypes=FLOATS)

    @table.kernel()
    def frexp(input: Any) -> Any:
        return xp.frexp(input)
