"""Layer norm and RMS norm with their weights, forward and backward."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorplug.plugin import FLOATS, KernelTable

from .. import sources
from .._cupy import cp
from ..dtypes import name_of

_LANES = 32  # as in sources/rownorm.cu
_BLOCKS = 2048


def build(table: KernelTable) -> None:
    """Add these kernels to `table`."""
    for function in (
        layer_normalize,
        layer_normalize_gradient,
        rms_normalize,
        rms_normalize_gradient,
    ):
        table.add(function.__name__, function, dtypes=FLOATS)


def _computed(array: Any) -> Any:
    return np.dtype(np.float64 if array.dtype == np.float64 else np.float32)


def _narrow(input: Any, weight: Any) -> int:
    return int(weight.dtype == input.dtype and input.dtype.itemsize == 2)


def layer_normalize(inputs: Sequence[Any], eps: float) -> tuple[Any, Any, Any]:
    """Return rows with mean 0 and variance 1, times a weight plus a bias; the means; 1 / the deviations."""
    output, mean, rstd = _normalized(inputs[0], inputs[1], inputs[2], eps, True)
    return output, mean, rstd


def rms_normalize(inputs: Sequence[Any], eps: float) -> tuple[Any, Any]:
    """Return rows over their root mean square, times a weight, and 1 / the root mean squares."""
    output, _, rstd = _normalized(inputs[0], inputs[1], None, eps, False)
    return output, rstd


def _normalized(
    input: Any, weight: Any, bias: Any | None, eps: float, centred: bool
) -> tuple[Any, Any, Any]:
    array, size = cp.ascontiguousarray(input), weight.size
    narrow = (*input.shape[: input.ndim - weight.ndim], *[1] * weight.ndim)
    output = cp.empty(input.shape, input.dtype)
    rstd = cp.empty(narrow, _computed(input))
    mean = cp.empty(narrow, rstd.dtype) if centred else None
    if array.size:
        weights = [None if w is None else cp.ascontiguousarray(w) for w in (weight, bias)]
        extents = (np.int64(rstd.size), np.int64(size), np.float64(eps))
        arguments = (array, *weights, output, mean, rstd, *extents)
        sources.launch(
            "rownorm", "normalize_rows", name_of(array), rstd.size, arguments, NARROW=_narrow(input, weight)
        )
    elif rstd.size:  # rows of no elements
        rstd[...] = np.nan
        if mean is not None:
            mean[...] = np.nan
    return output, mean, rstd


def layer_normalize_gradient(
    g_output: Any, g_mean: Any, g_rstd: Any, input: Any, weight: Any, mean: Any, rstd: Any
) -> tuple[Any, Any, Any]:
    """Return the gradients of the rows, the weight and the bias."""
    return _gradients(g_output, g_mean, g_rstd, input, weight, mean, rstd)


def rms_normalize_gradient(
    g_output: Any, g_rstd: Any, input: Any, weight: Any, rstd: Any
) -> tuple[Any, Any]:
    """Return the gradients of the rows and the weight."""
    g_input, g_weight, _ = _gradients(g_output, None, g_rstd, input, weight, None, rstd)
    return g_input, g_weight


def _gradients(
    g_output: Any, g_mean: Any, g_rstd: Any, input: Any, weight: Any, mean: Any, rstd: Any
) -> tuple[Any, Any, Any]:
    result = cp.empty(input.shape, input.dtype)
    g_weight = cp.empty(weight.shape, weight.dtype)
    g_bias = None if mean is None else cp.empty(weight.shape, weight.dtype)
    if not input.size:
        g_weight[...] = 0
        if g_bias is not None:
            g_bias[...] = 0
        return result, g_weight, g_bias
    gradient, array, weight = [cp.ascontiguousarray(a) for a in (g_output, input, weight)]
    statistics = [
        None if a is None else cp.ascontiguousarray(a) for a in (g_mean, g_rstd, mean, rstd)
    ]
    name, narrow = name_of(array), _narrow(input, weight)
    rows, size = rstd.size, weight.size
    extents = (np.int64(rows), np.int64(size))
    arguments: tuple[Any, ...] = (
        gradient, statistics[0], statistics[1], array, weight, statistics[2], statistics[3], result, *extents,
    )  # fmt: skip
    sources.launch("rownorm", "normalize_rows_gradient", name, rows, arguments, NARROW=narrow)
    groups = -(-size // _LANES)
    splits = max(1, min(_BLOCKS // groups, -(-rows // 64)))
    partial = cp.empty((splits, size, 2), _computed(input))
    arguments = (gradient, array, statistics[2], statistics[3], partial, *extents, np.int64(splits))
    sources.launch("rownorm", "sums_of_columns", name, groups * splits, arguments, NARROW=narrow)
    arguments = (partial, g_weight, g_bias, np.int64(size), np.int64(splits))
    blocks = sources.blocks_for(math.prod(weight.shape))
    sources.launch("rownorm", "add_up_columns", name, blocks, arguments, NARROW=narrow)
    return result, g_weight, g_bias
