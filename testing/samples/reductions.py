"""Records of reductions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.dtypes import DType

from ..records import ErrorSample, OpRecord, Sample


def reduction_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    """Yield reductions over all, one, several and no elements."""
    yield Sample(make(3, 4))
    yield Sample(make())
    yield Sample(make(0, 3))
    yield Sample(make(2, 3, 4), 1)
    yield Sample(make(2, 3, 4), (0, -1), keepdim=True)
    yield Sample(make(0, 3), 0)


def _sum(a: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    return np.sum(a, axis=dim, keepdims=keepdim)


def _sum_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, 3), 2), IndexError, "Dimension out of range")
    yield ErrorSample(Sample(make(2, 3), (0, 0)), RuntimeError, "multiple times")


RECORDS = [
    OpRecord("sum", reduction_samples, _sum, errors=_sum_errors),
]
