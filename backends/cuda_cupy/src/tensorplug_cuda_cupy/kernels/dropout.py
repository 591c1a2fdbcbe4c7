"""Dropout, by the same random bits as on the CPU."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorplug.plugin import FLOATS, KernelTable

from .. import sources
from .._cupy import cp
from ..dtypes import name_of
from .random import stream_arguments


def build(table: KernelTable) -> None:
    """Add these kernels to `table`."""
    for function in (native_dropout, native_dropout_backward):
        table.add(function.__name__, function, dtypes=FLOATS)


def _scale(p: float, dtype: Any) -> np.float64:
    """Return what the rest is multiplied by, as exactly as the dtype has it."""
    scale = 1 / (1 - p) if p < 1 else 0.0
    return np.float64(np.array(scale, dtype) if dtype.itemsize == 2 else scale)


def native_dropout(input: Any, p: float, seed: int, offset: int) -> tuple[Any, Any]:
    """Return the input with elements zeroed, and which were kept."""
    array = cp.ascontiguousarray(input).reshape(input.shape)
    output, kept = cp.empty(array.shape, array.dtype), cp.empty(array.shape, bool)
    if array.size:
        # A word's upper 24 bits make a float32 that is compared with p as float32.
        least = np.uint32(math.ceil(float(np.float32(p)) * 16777216.0))
        stream = stream_arguments(array.size, seed, offset)
        arguments = (
            array,
            output,
            kept,
            np.int64(array.size),
            *stream,
            least,
            _scale(p, array.dtype),
        )
        blocks = sources.blocks_for(-(-array.size // 4))
        sources.launch("dropout", "dropout", name_of(array), blocks, arguments)
    return output, kept


def native_dropout_backward(g: Any, kept: Any, p: float) -> Any:
    """Return `g` scaled where the element was kept, and zero elsewhere."""
    shape = cp.broadcast_shapes(g.shape, kept.shape) if g.shape != kept.shape else g.shape
    gradient, mask = [
        cp.ascontiguousarray(array if array.shape == shape else cp.broadcast_to(array, shape))
        for array in (g, kept)
    ]
    output = cp.empty(shape, g.dtype)
    if output.size:
        arguments = (gradient, mask, output, np.int64(output.size), _scale(p, g.dtype))
        blocks = sources.blocks_for(output.size)
        sources.launch("dropout", "native_dropout_backward", name_of(gradient), blocks, arguments)
    return output
