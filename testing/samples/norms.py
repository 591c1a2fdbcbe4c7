"""Records of norms."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import DType, float64, int64

from ..records import ErrorSample, OpRecord, Sample
from .reductions import INEXACT

# One rounding of the result in half precision; a power and its root in single.
ROUNDING = {"float16": 2e-2, "bfloat16": 2e-1, "float32": 2e-5, "complex64": 2e-5}
ROOTS = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 1e-5, "complex64": 1e-5}


def norm_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    """Yield norms of each kind over all and some dimensions."""
    yield Sample(make(3, 4))
    yield Sample(make())
    yield Sample(make(3, 4), 2, 1)
    yield Sample(make(3, 4), 1, 0, True)
    yield Sample(make(3, 4), 3, (0, 1))
    yield Sample(make(3, exclude_zero=True), 0.5)
    yield Sample(make(3, 4), 1.5, -1)
    yield Sample(make(3, 4), math.inf)
    yield Sample(make(3, 4), -math.inf, 1)
    yield Sample(make(3, 4), "fro", (0, 1))
    yield Sample(make(2, 0), 2, 1)
    yield Sample(make(3) * 0, label="zeros")


def _public_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for sample in norm_samples(make, dtype):
        if sample.label != "zeros":  # finite differences find no slope there
            yield sample
    yield Sample(make(3, 4), 0, 1)
    if not dtype.is_complex:
        yield Sample(make(3, 4), 2, dtype=float64)


def norm(a: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """Return the vector norm as NumPy computes it."""
    size = np.abs(a)
    axis = dim if a.ndim else None
    order = 2 if p == "fro" or p is None else p
    if order == 0:
        return np.sum(size != 0, axis=axis, keepdims=keepdim).astype(np.float64)
    if math.isinf(order):
        return (np.max if order > 0 else np.min)(size, axis=axis, keepdims=keepdim)
    return np.sum(size**order, axis=axis, keepdims=keepdim) ** (1 / order)


def _errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(3, dtype=int64)), RuntimeError, "floating point or complex")
    yield ErrorSample(Sample(make(0), math.inf), RuntimeError, "identity")
    yield ErrorSample(Sample(make(3), "x"), RuntimeError, "'fro' or 'nuc'")
    yield ErrorSample(Sample(make(3), 2, 1), IndexError, "Dimension out of range")


RECORDS = [
    OpRecord(
        "norm", _public_samples, norm, dtypes=INEXACT, errors=_errors, atol=ROUNDING, rtol=ROOTS
    ),
]
