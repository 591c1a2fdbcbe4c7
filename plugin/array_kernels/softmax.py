"""Kernels of softmax and its kin."""

from __future__ import annotations

from typing import Any

from tensorplug.core.device.dtypes import bfloat16, float16, float32, float64
from tensorplug.core.tensor.shapes import Shape, reduced_shape

from ..tables import KernelTable
from .namespace import ArrayNamespace


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    xp = namespace.xp
    reduce_add = namespace.reduce_add
    exp = xp.exp

    def shifted(input: Any, axis: int) -> Any:
        """Return the input less its maximum along `axis`, in memory of our own, row by row."""
        input = xp.ascontiguousarray(input)
        # Where the maximum is -inf, NaN is the answer: 0/0.
        return input - xp.max(input, axis=axis, keepdims=True)

    @table.kernel("softmax")
    def softmax(input: Any, dim: int) -> Any:
        if input.ndim == 0:
            return xp.where(xp.isfinite(input), xp.ones_like(input), input - input)
        if input.size == 0:
            return xp.empty(input.shape, input.dtype)
        array = shifted(input, dim)
        exp(array, out=array)
        array /= reduce_add(array, dim, None, None, True)
        return array

    @table.kernel("log_softmax")
    def log_softmax(input: Any, dim: int) -> Any:
        if input.ndim == 0:
            return input - input
        if input.size == 0:
            return xp.empty(input.shape, input.dtype)
        array = shifted(input, dim)
        array -= xp.log(reduce_add(exp(array), dim, None, None, True))
        return array

    @table.kernel("logsumexp", dtypes=(float32, float64))
    def logsumexp(input: Any, dim: Shape, keepdim: bool) -> Any:
        if input.size == 0:
            return xp.log(reduce_add(input, dim, None, None, keepdim))
        peak = xp.max(input, axis=dim, keepdims=True)
        peak = xp.where(xp.isinf(peak), xp.zeros_like(peak), peak)
        total = xp.log(reduce_add(exp(input - peak), dim, None, None, True)) + peak
        total = xp.ascontiguousarray(total) if total.ndim else total
        return total if keepdim else total.reshape(reduced_shape(input.shape, dim, False))

    for function in (softmax, log_softmax):
        table.add(
            function.__name__, namespace.through_float32(function), dtypes=(float16, bfloat16)
        )
