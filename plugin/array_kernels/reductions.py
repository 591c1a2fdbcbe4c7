"""Kernels that reduce over dimensions."""

from __future__ import annotations

import math
from typing import Any

from tensorplug.core.device.dtypes import INTEGRAL, bfloat16, bool_, float16, uint8
from tensorplug.core.tensor.shapes import Shape

from ..tables import KernelTable
from .namespace import ArrayNamespace

# What NumPy sums in a wider integer unless told otherwise.
NARROW = (bool_, *[dtype for dtype in INTEGRAL if dtype.itemsize < 8])


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    xp = namespace.xp
    halves = (float16, bfloat16)
    reduce_row = xp.add.reduce
    reduce_add = namespace.reduce_add
    reduce_multiply = xp.multiply.reduce
    truth_type = namespace.native(uint8)

    def in_rows(result: Any) -> Any:
        """Return a result row by row; the library keeps the order of what it reduces."""
        return xp.ascontiguousarray(result) if result.ndim > 1 else result

    @table.kernel()
    def sum(input: Any, dim: Shape, keepdim: bool) -> Any:
        if input.ndim < 2:  # a call costs what a small sum does
            return reduce_row(input, dim, None, None, keepdim)
        result = reduce_add(input, dim, None, None, keepdim)
        return result if input.ndim < 3 else in_rows(result)

    @table.kernel()
    def mean(input: Any, dim: Shape, keepdim: bool) -> Any:
        count = math.prod([input.shape[d] for d in dim])
        total = in_rows(reduce_add(input, dim, None, None, keepdim))
        # An empty mean is 0/0: a Python zero would raise, the array's own gives NaN.
        return total / (count or total.dtype.type(0))

    @table.kernel()
    def prod(input: Any, dim: Shape, keepdim: bool) -> Any:
        return in_rows(reduce_multiply(input, dim, None, None, keepdim))

    # The library would widen these; who asks for a narrow sum gets one that wraps around.
    @table.kernel("sum", dtypes=NARROW)
    def sum_narrow(input: Any, dim: Shape, keepdim: bool) -> Any:
        return in_rows(reduce_add(input, dim, input.dtype, None, keepdim))

    @table.kernel("prod", dtypes=NARROW)
    def prod_narrow(input: Any, dim: Shape, keepdim: bool) -> Any:
        return in_rows(reduce_multiply(input, dim, input.dtype, None, keepdim))

    for function in (sum, mean, prod):
        table.add(function.__name__, namespace.through_float32(function), dtypes=halves)

    @table.kernel("any")
    def any_(input: Any, dim: Shape, keepdim: bool) -> Any:
        return in_rows(xp.any(input, axis=dim, keepdims=keepdim))

    @table.kernel("all")
    def all_(input: Any, dim: Shape, keepdim: bool) -> Any:
        return in_rows(xp.all(input, axis=dim, keepdims=keepdim))

    @table.kernel("any", dtypes=(uint8,))
    def any_uint8(input: Any, dim: Shape, keepdim: bool) -> Any:
        return any_(input, dim, keepdim).astype(truth_type)

    @table.kernel("all", dtypes=(uint8,))
    def all_uint8(input: Any, dim: Shape, keepdim: bool) -> Any:
        return all_(input, dim, keepdim).astype(truth_type)

    @table.kernel()
    def amax(input: Any, dim: Shape, keepdim: bool) -> Any:
        return in_rows(xp.max(input, axis=dim, keepdims=keepdim))

    @table.kernel()
    def amin(input: Any, dim: Shape, keepdim: bool) -> Any:
        return in_rows(xp.min(input, axis=dim, keepdims=keepdim))

    @table.kernel()
    def argmax(input: Any, dim: int | None, keepdim: bool) -> Any:
        return xp.argmax(input, axis=dim if input.ndim else None, keepdims=keepdim)

    @table.kernel()
    def argmin(input: Any, dim: int | None, keepdim: bool) -> Any:
        return xp.argmin(input, axis=dim if input.ndim else None, keepdims=keepdim)

    for compared in (amax, amin, argmax, argmin):
        wide = namespace.through_float32(compared)
        table.add(compared.__name__, wide, dtypes=(bfloat16,))
