"""Activations, and the products of a gradient with their derivatives, each in one pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorplug.plugin import FLOATS, KernelTable

from .. import sources
from .._cupy import cp
from ..dtypes import name_of

#: Kernels of sources/activations.cu, named as their ops, that take up to three options.
FUNCTIONS = (
    "elu",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "logsigmoid",
    "mish",
    "softplus",
    "threshold",
)
GRADIENTS = (
    "elu_backward",
    "hardswish_backward",
    "hardtanh_backward",
    "leaky_relu_backward",
    "logsigmoid_backward",
    "softplus_backward",
)


def build(table: KernelTable) -> None:
    """Add these kernels to `table`."""
    for function in (gelu, gelu_backward, silu, silu_backward):
        table.add(function.__name__, function, dtypes=FLOATS)
    for name in FUNCTIONS:
        table.add(name, activation(name), dtypes=FLOATS)
    for name in GRADIENTS:
        table.add(name, gradient(name), dtypes=FLOATS)


def relu(input: Any, out: Any = None) -> Any:
    """Return each element, or 0 where it is negative; NaN stays."""
    if out is None:
        return _pointwise("relu", (input,), *_three(()))
    if out is input and out.flags.c_contiguous:
        if out.size:
            arguments = (out, out, np.int64(out.size), *_three(()))
            blocks = sources.blocks_for(out.size)
            sources.launch("activation", "relu", name_of(out), blocks, arguments)
        return out
    return cp.maximum(input, cp.zeros((), input.dtype), out=out)


def relu_backward(g: Any, result: Any) -> Any:
    """Return `g` where relu's result is not 0."""
    if g.shape != result.shape:
        g, result = cp.broadcast_arrays(g, result)
    return _pointwise("relu_backward", (g, result), *_three(()))


def gelu(input: Any, approximate: str) -> Any:
    """Return x times the normal distribution function of x."""
    return _pointwise("gelu", (input,), np.int32(approximate == "tanh"))


def gelu_backward(g: Any, input: Any, approximate: str) -> Any:
    """Return `g` times the derivative of :func:`gelu`."""
    return _pointwise("gelu_backward", (g, input), np.int32(approximate == "tanh"))


def silu(input: Any) -> Any:
    """Return x times sigmoid(x)."""
    return _pointwise("silu", (input,))


def silu_backward(g: Any, input: Any) -> Any:
    """Return `g` times the derivative of :func:`silu`."""
    return _pointwise("silu_backward", (g, input))


def activation(name: str) -> Callable[..., Any]:
    """Return the kernel of an activation with options."""

    def kernel(input: Any, *options: float) -> Any:
        return _pointwise(name, (input,), *_three(options))

    return kernel


def gradient(name: str) -> Callable[..., Any]:
    """Return the kernel of an activation's derivative, times a gradient."""

    def kernel(g: Any, input: Any, *options: float) -> Any:
        return _pointwise(name, (g, input), *_three(options))

    return kernel


def _three(options: tuple[float, ...]) -> list[Any]:
    return [np.float64(option) for option in (*options, 0.0, 0.0, 0.0)[:3]]


def _pointwise(name: str, arrays: tuple[Any, ...], *options: Any) -> Any:
    """Return what a kernel makes of arrays of one shape, element by element, in the last one's layout."""
    last = arrays[-1]
    rows = last.flags.c_contiguous
    output = cp.ndarray(last.shape, last.dtype) if rows else cp.empty_like(last)
    if output.size:
        if all([array.strides == output.strides == last.strides for array in arrays]):
            dense = list(arrays)  # without gaps, and all in one order, whichever it is
        else:
            output = cp.empty(last.shape, last.dtype)
            dense = [cp.ascontiguousarray(cp.broadcast_to(array, last.shape)) for array in arrays]
        arguments = (*dense, output, np.int64(last.size), *options)
        blocks = sources.blocks_for(last.size)
        sources.launch("activation", name, name_of(last), blocks, arguments)
    return output
