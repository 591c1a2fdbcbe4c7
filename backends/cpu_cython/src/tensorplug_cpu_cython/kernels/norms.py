"""Kernels of norms of vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable, Shape

from .. import pointwise, reductions, statistics
from .._dtypes import FLOATS
from ..below import below
from .statistics import wide

# Compiled ones: NumPy's would warn of the powers of zeros, and asking it not to costs more than small sums.
_magnitude = pointwise.Unary("abs", np.abs).call
_power = pointwise.Binary("pow", np.power).call
_total = reductions.Reduction(reductions.SUM, below("sum")).call
_least = reductions.Reduction(reductions.MIN, below("amin")).call
_largest = reductions.Reduction(reductions.MAX, below("amax")).call


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    table.add("linalg_vector_norm", statistics.Norm(_norm).call, dtypes=FLOATS)


# For empty arrays, dimensions that are kept between reduced ones, and other orders.


def _norm(input: Any, ord: float, dim: Shape, keepdim: bool) -> Any:
    x = _magnitude(wide(input))
    if not dim:
        result = (x != 0) if ord == 0 else x
    elif ord == 0:
        result = (x != 0).sum(dim, keepdims=keepdim)
    elif math.isinf(ord):
        result = (_largest if ord > 0 else _least)(x, dim, keepdim)
    elif ord == 1:
        result = x.sum(dim, keepdims=keepdim)
    elif ord == 2:
        result = np.sqrt((x * x).sum(dim, keepdims=keepdim))
    else:
        powers = _total(_power(x, _number(ord, x)), dim, keepdim)
        result = _power(np.asarray(powers), _number(1 / ord, x))
    return np.asarray(result, input.dtype)


def _number(value: float, like: Any) -> Any:
    return np.array(value, like.dtype)
