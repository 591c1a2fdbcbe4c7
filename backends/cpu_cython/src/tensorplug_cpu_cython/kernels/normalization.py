"""Kernels of batch normalisation, and of standardisation, which all other normalisation layers share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable, Shape

from .. import normalization_batch, normalization_layer, softmax
from .._dtypes import FLOATS

WIDE = [dtype for dtype in FLOATS if dtype.itemsize > 2]


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    for name in ("batch_normalize", "batch_normalize_gradient"):
        table.add(name, getattr(normalization_batch, name), dtypes=FLOATS)
    for name in ("row_norm", "affine_row_norm", "channel_norm", "unit_vectors"):
        table.add(name, getattr(normalization_layer, name), dtypes=FLOATS)
        table.add(
            f"{name}_gradient", getattr(normalization_layer, f"{name}_gradient"), dtypes=FLOATS
        )
    table.add("update_statistics", normalization_layer.update_statistics, dtypes=WIDE)

    @table.kernel(dtypes=FLOATS)
    def standardize(input: Any, dim: Shape, eps: float) -> Any:
        return softmax.standardize(input, tuple(dim), eps, _standardize)

    @table.kernel(dtypes=FLOATS)
    def standardize_gradient(
        g_output: Any, g_mean: Any, g_rstd: Any, output: Any, rstd: Any, dim: Shape
    ) -> Any:
        return softmax.standardize_gradient(
            g_output, g_mean, g_rstd, output, rstd, tuple(dim), _standardize_gradient
        )


# For empty arrays, and dimensions that are kept on both sides of reduced ones.


def _wide(*arrays: Any) -> list[Any]:
    return [np.asarray(a, np.float32) if a.dtype.itemsize == 2 else np.asarray(a) for a in arrays]


def _mean(array: Any, dim: Shape) -> Any:
    count = array.dtype.type(max(math.prod([array.shape[d] for d in dim]), 1))
    return array.sum(dim, keepdims=True) / count


def _standardize(input: Any, dim: Shape, eps: float) -> Any:
    (x,) = _wide(input)
    mean = np.asarray(_mean(x, dim))
    centred = x - mean
    rstd = np.asarray(1 / np.sqrt(_mean(centred * centred, dim) + x.dtype.type(eps)))
    return tuple([a.astype(input.dtype, copy=False) for a in (centred * rstd, mean, rstd)])


def _standardize_gradient(
    g_output: Any, g_mean: Any, g_rstd: Any, output: Any, rstd: Any, dim: Shape
) -> Any:
    g, m, s, y, r = _wide(g_output, g_mean, g_rstd, output, rstd)
    n = y.dtype.type(max(math.prod([y.shape[d] for d in dim]), 1))
    along = _mean(g * y, dim) * r + s * (r * r) / n
    constant = _mean(g, dim) * r - m / n
    return (g * r - y * along - constant).astype(output.dtype, copy=False)
