"""Vectors divided by their lengths, and the gradient of that."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorplug.plugin import FLOATS, KernelTable

from ... import sources
from ..._cupy import cp
from ...dtypes import name_of


def build(table: KernelTable) -> None:
    """Add these kernels to `table`."""
    table.add("normalize", normalize, dtypes=FLOATS)
    table.add("normalize_backward", normalize_backward, dtypes=FLOATS)


def normalize(input: Any, dim: int, eps: float) -> Any:
    """Return the vectors along `dim` divided by their lengths, which count as at least `eps`."""
    return _launch("divide", [input], dim, eps)


def normalize_backward(g: Any, input: Any, dim: int, eps: float) -> Any:
    """Return the gradient of :func:`normalize`'s input."""
    return _launch("gradient_of", [g, input], dim, eps)


def _launch(name: str, arrays: list[Any], dim: int, eps: float) -> Any:
    rows = [cp.ascontiguousarray(array) for array in arrays]
    shape = arrays[-1].shape
    result = cp.empty(shape, arrays[-1].dtype)
    if result.size:
        size, inner = (shape[dim], math.prod(shape[dim + 1 :])) if shape else (1, 1)
        vectors = result.size // size
        blocks = vectors if inner == 1 else sources.blocks_for(vectors)
        kernel = f"{name}_{'rows' if inner == 1 else 'columns'}"
        extents = [np.int64(extent) for extent in (vectors, size, inner)]
        arguments = (*rows, result, *extents, np.float64(eps))
        sources.launch("normalization_normalize", kernel, name_of(result), blocks, arguments)
    return result
