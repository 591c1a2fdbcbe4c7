"""Kernels of norms of vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable, Shape

from .. import statistics
from .._dtypes import FLOATS
from .statistics import wide


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    table.add("linalg_vector_norm", statistics.Norm(_norm).call, dtypes=FLOATS)


# For empty arrays, dimensions that are kept between reduced ones, and other orders.


def _norm(input: Any, ord: float, dim: Shape, keepdim: bool) -> Any:
    x = abs(wide(input))
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
