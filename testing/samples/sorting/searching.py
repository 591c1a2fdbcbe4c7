"""Records of binary search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import DType, float32

from ...records import ErrorSample, OpRecord, Sample
from ..reductions import NUMBERED, with_nan


def search_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    """Yield searches in one sequence and in one for each row, from both sides."""
    one = make(7).sort()[0]
    rows = make(2, 5).sort(-1)[0]
    yield Sample(one, make(3, 4))
    yield Sample(one, one, right=True)
    yield Sample(one, make())
    yield Sample(one, 3)
    yield Sample(rows, make(2, 3), out_int32=True)
    yield Sample(rows, rows, side="right")
    yield Sample(one[:0], make(3))
    yield Sample(one, make(0))
    unsorted = make(6)
    yield Sample(unsorted, make(3), sorter=unsorted.argsort())
    if dtype is float32:
        yield Sample(one, with_nan(make(6)), label="nan")


def _searchsorted(
    rows: Any,
    values: Any,
    out_int32: bool = False,
    right: bool = False,
    side: Any = None,
    sorter: Any = None,
) -> Any:
    side = side or ("right" if right else "left")
    if sorter is not None:
        rows = np.take_along_axis(rows, sorter, -1)
    if rows.ndim == 1:
        return np.searchsorted(rows, values, side)
    pairs = zip(rows, values, strict=True)
    return np.stack([np.searchsorted(row, value, side) for row, value in pairs])


def _errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(3), make(3), side="x"), RuntimeError, "'left' or 'right'")
    yield ErrorSample(Sample(make(3), make(3), side="left", right=True), RuntimeError, "opposites")
    yield ErrorSample(Sample(make(2, 3), make(3)), RuntimeError, "N-1 dimensions")
    yield ErrorSample(Sample(make(), make(3)), RuntimeError, "positive dimension")
    yield ErrorSample(Sample(make(3), make(3), sorter=make(3)), RuntimeError, "long dtype")


def _bucket_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    edges = make(5).sort()[0]
    yield Sample(make(3, 4), edges)
    yield Sample(edges, edges, right=True)
    yield Sample(3, edges)
    yield Sample(make(), edges, out_int32=True)
    yield Sample(make(0, 2), edges)
    yield Sample(make(3), edges[:0])


def _bucketize(values: Any, edges: Any, out_int32: bool = False, right: bool = False) -> Any:
    return np.searchsorted(edges, values, "right" if right else "left")


def _bucket_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(3), make(2, 3)), RuntimeError, "1 dimension")


RECORDS = [
    OpRecord(
        "searchsorted",
        search_samples,
        _searchsorted,
        dtypes=NUMBERED,
        gradient=False,
        errors=_errors,
    ),
    OpRecord(
        "bucketize",
        _bucket_samples,
        _bucketize,
        dtypes=NUMBERED,
        gradient=False,
        errors=_bucket_errors,
    ),
]
