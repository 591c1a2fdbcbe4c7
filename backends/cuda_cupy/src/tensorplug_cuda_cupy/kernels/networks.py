"""Kernels of nn's ops in one pass each."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorplug.plugin import COMPLEXES, FLOATS, KernelTable, Shape

from .. import sources
from .._cupy import cp
from ..dtypes import name_of
from .gemm import matmul
from .positions import combine


def build(table: KernelTable) -> None:
    """Add these kernels to `table`."""
    for function in (
        gelu,
        gelu_gradient,
        negative_log_likelihood,
        silu,
        silu_gradient,
        standardize,
        standardize_gradient,
    ):
        table.add(function.__name__, function, dtypes=FLOATS)
    table.add("linear", linear, dtypes=(*FLOATS, *COMPLEXES))
    table.add("max_pool_gradient", max_pool_gradient, dtypes=FLOATS)


def linear(input: Any, weight: Any, bias: Any | None) -> Any:
    """Return ``input @ weight.T + bias``."""
    output = matmul(input, weight.T)
    if bias is None:
        return output
    if bias.ndim <= output.ndim:
        output += bias
        return output
    return output + bias


# --- pointwise ----------------------------------------------------------------------------------


def gelu(input: Any, approximate: str) -> Any:
    """Return x times the normal distribution function of x."""
    return _pointwise("gelu", (input,), np.int32(approximate == "tanh"))


def gelu_gradient(g: Any, input: Any, approximate: str) -> Any:
    """Return `g` times the derivative of :func:`gelu`."""
    return _pointwise("gelu_gradient", (g, input), np.int32(approximate == "tanh"))


def silu(input: Any) -> Any:
    """Return x times sigmoid(x)."""
    return _pointwise("silu", (input,))


def silu_gradient(g: Any, input: Any) -> Any:
    """Return `g` times the derivative of :func:`silu`."""
    return _pointwise("silu_gradient", (g, input))


def _pointwise(name: str, arrays: tuple[Any, ...], *options: Any) -> Any:
    """Return what a kernel makes of arrays of one shape, element by element."""
    last = arrays[-1]
    output = cp.empty(last.shape, last.dtype)
    if last.size:
        dense = [cp.ascontiguousarray(cp.broadcast_to(array, last.shape)) for array in arrays]
        arguments = (*dense, output, np.int64(last.size), *options)
        sources.launch("activations", name, name_of(last), sources.blocks_for(last.size), arguments)
    return output


# --- normalization and losses -------------------------------------------------------------------


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
        sources.launch("normalization", "standardize", name_of(array), grouped[1], arguments)
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
        sources.launch("normalization", "standardize_gradient", name, grouped[1], arguments)
    return result


def negative_log_likelihood(
    input: Any, target: Any, weight: Any | None, ignore_index: int
) -> tuple[Any, Any]:
    """Return what each sample loses, and what it weighs; NaN where the target is no class."""
    losses, weights = cp.empty(target.shape, input.dtype), cp.empty(target.shape, input.dtype)
    if target.size:
        outer, classes = input.shape[:2]
        arguments = (
            cp.ascontiguousarray(input),
            cp.ascontiguousarray(target),
            None if weight is None else cp.ascontiguousarray(weight),
            losses,
            weights,
            np.int64(outer),
            np.int64(classes),
            np.int64(math.prod(input.shape[2:])),
            np.int64(ignore_index),
        )
        blocks = sources.blocks_for(target.size)
        sources.launch("losses", "negative_log_likelihood", name_of(input), blocks, arguments)
    return losses, weights


def max_pool_gradient(gradient: Any, indices: Any, shape: Shape) -> Any:
    """Return the gradient at the places where the maxima were."""
    planes, size = math.prod(shape[:2]), math.prod(shape[2:])
    flat = cp.zeros(planes * size, gradient.dtype)
    if gradient.size and flat.size:
        starts = (cp.arange(planes, dtype=np.int64) * size).reshape(planes, 1)
        places = cp.ascontiguousarray(indices.reshape(planes, -1) + starts).reshape(-1)
        combine(flat, places, cp.ascontiguousarray(gradient).reshape(-1), "sum")
    return flat.reshape(shape)
