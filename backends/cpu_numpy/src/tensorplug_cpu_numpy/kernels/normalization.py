"""Normalization, in a few passes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable, Shape, dtype_named
from tensorplug.plugin.array_kernels import ArrayNamespace

Array = np.ndarray[Any, Any]
_add: Any = np.add.reduce


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    halves = (dtype_named("float16"), dtype_named("bfloat16"))
    for function in (standardize, standardize_gradient):
        table.add(function.__name__, function)
        table.add(function.__name__, namespace.through_float32(function), dtypes=halves)


def standardize(input: Array, dim: Shape, eps: float) -> tuple[Array, Array, Array]:
    """Return the input with mean 0 and variance 1, the means, and one over the deviations."""
    count = math.prod([input.shape[d] for d in dim])
    mean = np.asarray(_add(input, dim, None, None, True) / input.dtype.type(max(count, 1)))
    output = input - mean
    squares = _add(output * output, dim, None, None, True)
    rstd = squares / input.dtype.type(max(count, 1))
    rstd += input.dtype.type(eps)
    rstd = np.asarray(1 / np.sqrt(rstd), input.dtype)
    output *= rstd
    return output, mean, rstd


def standardize_gradient(
    g_output: Array, g_mean: Array, g_rstd: Array, output: Array, rstd: Array, dim: Shape
) -> Array:
    """Return the gradient of :func:`standardize`."""
    count = output.dtype.type(max(math.prod([output.shape[d] for d in dim]), 1))
    along = _add(g_output * output, dim, None, None, True) * rstd
    along += g_rstd * (rstd * rstd)
    along /= count
    constant = _add(g_output, dim, None, None, True) * rstd
    constant -= g_mean
    constant /= count
    result = g_output * rstd
    result -= output * along
    result -= constant
    return result
