"""Kernels that any NumPy-like array library can run, written once against its namespace.

:func:`all_kernels` builds the table for a library; a backend adds its own kernels of higher priority where
it can do better.
"""

from __future__ import annotations

from ..tables import KernelTable
from . import (
    bitwise,
    comparison,
    copying,
    creation,
    cumulative,
    fourier,
    gathering,
    indexing,
    joining,
    pointwise,
    polynomials,
    products,
    random,
    rearranging,
    reductions,
    shape,
    softmaxes,
    sorting,
    statistics,
    strided,
)
from .namespace import ArrayNamespace

__all__ = ["ArrayNamespace", "all_kernels"]

_FAMILIES = (
    copying,
    creation,
    products,
    pointwise,
    random,
    reductions,
    shape,
    rearranging,
    strided,
    gathering,
    polynomials,
    joining,
    indexing,
    softmaxes,
    cumulative,
    sorting,
    comparison,
    bitwise,
    fourier,
    statistics,
)


def all_kernels(namespace: ArrayNamespace, priority: int = 0) -> KernelTable:
    """Return every shared kernel for an array library.

    Parameters
    ----------
    namespace : ArrayNamespace
        The library.
    priority : int
        The kernels' priority.
    """
    table = KernelTable(namespace.device, priority)
    for family in _FAMILIES:
        family.build(namespace, table)
    return table
