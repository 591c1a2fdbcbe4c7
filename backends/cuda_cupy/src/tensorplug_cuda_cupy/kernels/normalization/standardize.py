"""The standardization of which most normalization layers are made."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorplug.plugin import FLOATS, KernelTable, Shape

from ... import sources
from ..._cupy import cp
from ...dtypes import name_of


def build(table: KernelTable) -> None:
    """Add these kernels to `table`."""
    for function in (
        standardize,
        standardize_gradient,
    ):
        table.add(function.__name__, function, dtypes=FLOATS)


def _grouped(shape: Shape, dim: Shape) -> tuple[int, int, int] | None:
    """Return a shape as (outer, groups, inner) with the reduced dimensions outside; None if it is not so."""
    kept = [d for d in range(len(shape)) if d not in dim]
    first, last = (kept[0], kept[-1] + 1) if kept else (len(shape), len(shape))
    if len(kept) != last - first:
        return None
    return math.prod(shape[:first]), math.prod(shape[first:last]), math.prod(shape[last:])


def _kept_first(ndim: int, dim: Shape) -> Shape:
    return (*[d for d in range(ndim) if d not in dim], *[d for d in range(ndim) if d in dim])


def _turned(array: Any, order: Shape) -> tuple[Any, Shape]:
    """Return an array with its dimensions in an order, and the order that turns them back."""
    return array.transpose(order), tuple([order.index(d) for d in range(len(order))])


def standardize(input: Any, dim: Shape, eps: float) -> tuple[Any, Any, Any]:
    """Return the input with mean 0 and variance 1, the means, and one over the deviations."""
    grouped = _grouped(input.shape, dim)
    if grouped is None:
        order = _kept_first(input.ndim, dim)
        turned, back = _turned(input, order)
        reduced = tuple(range(input.ndim - len(dim), input.ndim))
        output, mean, rstd = [
            cp.ascontiguousarray(result.transpose(back))
            for result in standardize(turned, reduced, eps)
        ]
        return output, mean, rstd
    array = cp.ascontiguousarray(input)
    narrow = tuple([1 if d in dim else size for d, size in enumerate(input.shape)])
    output = cp.empty(input.shape, input.dtype)
    mean, rstd = cp.empty(narrow, input.dtype), cp.empty(narrow, input.dtype)
    if mean.size:
        extents = [np.int64(extent) for extent in grouped]
        arguments = (array, output, mean, rstd, *extents, np.float64(eps))
        sources.launch(
            "normalization_standardize", "standardize", name_of(array), grouped[1], arguments
        )
    return output, mean, rstd


def standardize_gradient(
    g_output: Any, g_mean: Any, g_rstd: Any, output: Any, rstd: Any, dim: Shape
) -> Any:
    """Return the gradient of :func:`standardize`."""
    grouped = _grouped(output.shape, dim)
    if grouped is None:
        order = _kept_first(output.ndim, dim)
        g_output, g_mean, g_rstd, turned, rstd = [
            _turned(array, order)[0] for array in (g_output, g_mean, g_rstd, output, rstd)
        ]
        back = _turned(output, order)[1]
        reduced = tuple(range(output.ndim - len(dim), output.ndim))
        gradient = standardize_gradient(g_output, g_mean, g_rstd, turned, rstd, reduced)
        return cp.ascontiguousarray(gradient.transpose(back))
    result = cp.empty(output.shape, output.dtype)
    if output.size:
        arrays = [cp.ascontiguousarray(a) for a in (g_output, g_mean, g_rstd, output, rstd)]
        extents = [np.int64(extent) for extent in grouped]
        arguments = (*arrays, result, *extents)
        name = name_of(output)
        sources.launch(
            "normalization_standardize", "standardize_gradient", name, grouped[1], arguments
        )
    return result
