"""Kernels of variances and norms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable, Shape

from .. import moments
from .._dtypes import FLOATS


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""

    @table.kernel(dtypes=FLOATS)
    def var(input: Any, dim: Shape, correction: float, keepdim: bool) -> Any:
        found = moments.reduce(input, moments.VARIANCE, tuple(dim), correction, keepdim)
        return _variance(input, dim, correction, keepdim) if found is None else found

    @table.kernel(dtypes=FLOATS)
    def std(input: Any, dim: Shape, correction: float, keepdim: bool) -> Any:
        found = moments.reduce(input, moments.DEVIATION, tuple(dim), correction, keepdim)
        if found is None:
            found = np.sqrt(_variance(input, dim, correction, keepdim))
        return found

    table.add("linalg_vector_norm", moments.Norm(_norm).call, dtypes=FLOATS)


# For empty arrays, dimensions that are kept between reduced ones, and norms of other orders.


def _wide(input: Any) -> Any:
    return np.asarray(input, np.float32) if input.dtype.itemsize == 2 else np.asarray(input)


def _variance(input: Any, dim: Shape, correction: float, keepdim: bool) -> Any:
    x = _wide(input)
    count = math.prod([x.shape[d] for d in dim])
    with np.errstate(all="ignore"):
        distance = x - x.sum(tuple(dim), keepdims=True) / x.dtype.type(count)
        total = (distance * distance).sum(tuple(dim), keepdims=keepdim)
        result = total / x.dtype.type(max(count - correction, 0))
    return np.asarray(result, input.dtype)


def _norm(input: Any, ord: float, dim: Shape, keepdim: bool) -> Any:
    x = abs(_wide(input))
    if not dim:
        result = (x != 0) if ord == 0 else x
    elif ord == 0:
        result = (x != 0).sum(dim, keepdims=keepdim)
    elif math.isinf(ord):
        result = (x.max if ord > 0 else x.min)(dim, keepdims=keepdim)
    elif ord == 1:
        result = x.sum(dim, keepdims=keepdim)
    elif ord == 2:
        result = np.sqrt((x * x).sum(dim, keepdims=keepdim))
    else:
        with np.errstate(all="ignore"):
            power = x.dtype.type(ord)
            result = (x**power).sum(dim, keepdims=keepdim) ** (1 / power)
    return np.asarray(result, input.dtype)
