"""Softmax and its logarithm in one kernel each."""

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
    table.add("_softmax", softmax, dtypes=FLOATS, priority=1)
    table.add("_log_softmax", log_softmax, dtypes=FLOATS, priority=1)


def softmax(input: Any, dim: int) -> Any:
    """Return exp(x) / sum(exp(x)) along a dimension."""
    return _softmax(input, dim, False)


def log_softmax(input: Any, dim: int) -> Any:
    """Return x - log(sum(exp(x))) along a dimension."""
    return _softmax(input, dim, True)


def _softmax(input: Any, dim: int, logarithm: bool) -> Any:
    output = cp.empty(input.shape, input.dtype)
    if not input.size:
        return output
    array = cp.ascontiguousarray(input)
    shape = input.shape or (1,)
    outer, size, inner = math.prod(shape[:dim]), shape[dim], math.prod(shape[dim + 1 :])
    extents = (np.int64(outer), np.int64(size))
    if inner == 1:
        name, blocks = "softmax_rows", outer
    else:
        name, blocks = "softmax_columns", sources.blocks_for(outer * inner)
        extents = (*extents, np.int64(inner))
    arguments = (array, output, *extents, np.int32(logarithm))
    sources.launch("softmax", name, name_of(array), blocks, arguments)
    return output
