"""The linear layer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable, dtype_named
from tensorplug.plugin.array_kernels import ArrayNamespace

Array = np.ndarray[Any, Any]


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    halves = (dtype_named("float16"), dtype_named("bfloat16"))
    for function in (linear,):
        table.add(function.__name__, function)
        table.add(function.__name__, namespace.through_float32(function), dtypes=halves)


def linear(input: Array, weight: Array, bias: Array | None) -> Array:
    """Return ``input @ weight.T + bias``."""
    if weight.dtype.kind in "biu":
        output: Array = np.matmul(input, weight.T).astype(input.dtype, copy=False)
    elif input.ndim > 2 and input.flags.c_contiguous and weight.ndim == 2:
        flat = input.reshape(math.prod(input.shape[:-1]), input.shape[-1])
        output = np.matmul(flat, weight.T).reshape(*input.shape[:-1], weight.shape[0])
    else:
        output = np.matmul(input, weight.T)
    if bias is None:
        return output
    if output.ndim:
        output += bias
        return output
    return np.asarray(output + bias)
