"""Softmax, its logarithm and their gradients in one kernel each."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorplug.plugin import FLOATS, KernelTable

from .. import sources
from .._cupy import cp
from ..dtypes import name_of


def build(table: KernelTable) -> None:
    """Add these kernels to `table`, above the shared ones."""
    for function in (softmax, log_softmax, softmax_backward, log_softmax_backward):
        table.add(function.__name__, function, dtypes=FLOATS, priority=1)


def softmax(input: Any, dim: int) -> Any:
    """Return exp(x) / sum(exp(x)) along a dimension."""
    return _launched("softmax", (input,), dim, False)


def log_softmax(input: Any, dim: int) -> Any:
    """Return x - log(sum(exp(x))) along a dimension."""
    return _launched("softmax", (input,), dim, True)


def softmax_backward(g: Any, result: Any, dim: int) -> Any:
    """Return the gradient of softmax's input."""
    return _launched("softmax_gradient", (g, result), dim, False)


def log_softmax_backward(g: Any, result: Any, dim: int) -> Any:
    """Return the gradient of log_softmax's input."""
    return _launched("softmax_gradient", (g, result), dim, True)


def _launched(kernel: str, arrays: tuple[Any, ...], dim: int, logarithm: bool) -> Any:
    """Return what the kernel for rows, or that for columns, makes of arrays of one shape."""
    first = arrays[0]
    output = cp.empty(first.shape, first.dtype)
    if not first.size:
        return output
    shape = first.shape or (1,)
    outer, size, inner = math.prod(shape[:dim]), shape[dim], math.prod(shape[dim + 1 :])
    extents: tuple[int, ...]
    if inner == 1:
        name, blocks, extents = f"{kernel}_rows", outer, (outer, size)
    else:
        name, blocks = f"{kernel}_columns", sources.blocks_for(outer * inner)
        extents = (outer, size, inner)
    arguments = (
        *[cp.ascontiguousarray(array) for array in arrays],
        output,
        *[np.int64(extent) for extent in extents],
        np.int32(logarithm),
    )
    sources.launch("softmax", name, name_of(first), blocks, arguments)
    return output
