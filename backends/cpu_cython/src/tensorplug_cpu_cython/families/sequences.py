"""Random bits, sums along a dimension, and joined arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable, Shape, dtype_named

from .. import machine, sequences
from .._dtypes import FLOATS


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    table.add("cumsum", sequences.cumsum, dtypes=(*FLOATS, dtype_named("int64")))

    @table.kernel()
    def philox_bits(shape: Shape, seed: int, offset: int) -> Any:
        return sequences.philox_bits(tuple(shape), seed, offset)

    # NumPy copies well; what is gained is memory that was used before.

    @table.kernel()
    def cat(tensors: list[Any], dim: int) -> Any:
        return _joined(tensors, dim)

    @table.kernel("_stack")
    def stack(tensors: list[Any], dim: int) -> Any:
        shape = tensors[0].shape
        expanded = (*shape[:dim], 1, *shape[dim:])
        return _joined([tensor.reshape(expanded) for tensor in tensors], dim)


def _joined(arrays: list[Any], dim: int) -> Any:
    shape = list(arrays[0].shape)
    shape[dim] = sum([array.shape[dim] for array in arrays])
    return np.concatenate(arrays, dim, out=machine.empty(tuple(shape), arrays[0].dtype))
