"""Kernels that any NumPy-like array library can run, written once against its namespace.

:func:`all_kernels` builds the table for a library; a backend adds its own kernels of higher priority where
it can do better.
"""

from __future__ import annotations

from ..tables import KernelTable
from . import (
    arithmetic,
    bitwise,
    clamp,
    comparison,
    complex,
    copying,
    creation,
    cumulative,
    elementary,
    fft,
    indexing,
    joining,
    linear,
    masking,
    matmul,
    numeric,
    random,
    rearranging,
    reductions,
    shape,
    softmax,
    sorting,
    special,
    statistics,
    strided,
    triangles,
)
from .namespace import ArrayNamespace

__all__ = ["ArrayNamespace", "all_kernels"]

_FAMILIES = (
    arithmetic,
    bitwise,
    clamp,
    comparison,
    complex,
    copying,
    creation,
    cumulative,
    elementary,
    fft,
    indexing,
    joining,
    linear,
    masking,
    matmul,
    numeric,
    random,
    rearranging,
    reductions,
    shape,
    softmax,
    sorting,
    special,
    statistics,
    strided,
    triangles,
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
