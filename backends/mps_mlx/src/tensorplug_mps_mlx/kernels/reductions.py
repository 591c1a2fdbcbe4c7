"""Kernels that reduce dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tensorplug.plugin import ArrayApiBackend, Shape, reduced_shape

from .._mlx import mx
from ..dtypes import BOOL, COMPLEX, DTYPES, FLOAT32, FLOATS, HALVES, INTEGERS, UINT8
from .halves import through_float32


def _reducing(function: Callable[..., Any], nothing: float) -> Callable[..., Any]:
    """Return a reduction that keeps the dtype; of nothing it is a number: MLX may not come back from that."""

    def kernel(input: Any, dim: Shape, keepdim: bool) -> Any:
        if not dim:
            return input
        if not input.size:
            shape = reduced_shape(input.shape, dim, keepdim)
            return mx.full(shape, mx.array(nothing, dtype=input.dtype))
        return function(input, axis=dim, keepdims=keepdim).astype(input.dtype)

    return kernel


_total = _reducing(mx.sum, 0)
_product = _reducing(mx.prod, 1)


def mean(input: Any, dim: Shape, keepdim: bool) -> Any:
    """Return the mean."""
    count = math.prod([input.shape[d] for d in dim])
    return _total(input, dim, keepdim) / mx.array(count, dtype=input.dtype)


def var(input: Any, dim: Shape, correction: float, keepdim: bool) -> Any:
    """Return the variance, by the distances from the mean."""
    count = math.prod([input.shape[d] for d in dim])
    distance = input - mean(input, dim, True)
    total = _total(mx.square(distance), dim, keepdim)
    return total / mx.array(max(count - correction, 0), dtype=input.dtype)


def std(input: Any, dim: Shape, correction: float, keepdim: bool) -> Any:
    """Return the square root of the variance."""
    return mx.sqrt(var(input, dim, correction, keepdim))


def _truth(function: Callable[..., Any], nothing: bool, dtype: Any) -> Callable[..., Any]:
    reduce = _reducing(function, nothing)

    def kernel(input: Any, dim: Shape, keepdim: bool) -> Any:
        return reduce(input != 0, dim, keepdim).astype(dtype)

    return kernel


def build(plugin: ArrayApiBackend) -> None:
    """Add these kernels to the plugin."""
    for op, function in (("sum", _total), ("prod", _product)):
        plugin.kernel(op, dtypes=(BOOL, *INTEGERS, FLOAT32, COMPLEX))(function)
        plugin.kernel(op, dtypes=HALVES)(through_float32(function))
    for function in (mean, var, std):
        plugin.kernel(dtypes=(FLOAT32,))(function)
        plugin.kernel(function.__name__, dtypes=HALVES)(through_float32(function))
    plugin.kernel("mean", dtypes=(COMPLEX,))(mean)
    for op, truth, nothing in (("any", mx.any, False), ("all", mx.all, True)):
        others = [dtype for dtype in DTYPES if dtype is not UINT8]
        plugin.kernel(op, dtypes=others)(_truth(truth, nothing, mx.bool_))
        plugin.kernel(op, dtypes=(UINT8,))(_truth(truth, nothing, mx.uint8))

    @plugin.kernel(dtypes=FLOATS)
    def logsumexp(input: Any, dim: Shape, keepdim: bool) -> Any:
        wide = input.astype(mx.float32)
        if not input.size:
            return mx.full(
                reduced_shape(input.shape, dim, keepdim), mx.array(-mx.inf, dtype=input.dtype)
            )
        return mx.logsumexp(wide, axis=dim, keepdims=keepdim).astype(input.dtype)
