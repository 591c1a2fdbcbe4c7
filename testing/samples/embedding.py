"""Records of embedding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.dtypes import FLOATS, DType, int64

from ..records import OpRecord, Sample
from ._networks import layer_record
from .indexing.gather import _ROUNDED
from .indexing.indexing import positions


def _embedding_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(5, 3), make(4, dtype=int64, low=0, high=4), -1, False)
    yield Sample(make(5, 3), make(2, 2, dtype=int64, low=0, high=4), -1, False)
    yield Sample(make(5, 3), make(0, dtype=int64, low=0, high=4), -1, False)


def _rows_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    at = positions(make, [0, 2, 2, 1])
    for padding, by_frequency in ((-1, False), (2, False), (-1, True), (0, True)):
        yield Sample(make(4, 3), at, 5, padding, by_frequency)
    yield Sample(make(2, 2, 3), at.reshape(2, 2), 3, -1, False)
    yield Sample(make(0, 3), positions(make, []), 2, -1, False)


def _rows(g: Any, indices: Any, rows: int, padding: int, by_frequency: bool) -> Any:
    flat = indices.reshape(-1)
    result = np.zeros((rows, g.shape[-1]))
    for row, source in zip(flat, g.reshape(-1, g.shape[-1]), strict=True):
        if row != padding:
            result[row] += source / (np.count_nonzero(flat == row) if by_frequency else 1)
    return result


RECORDS = [
    layer_record("embedding_rows", _embedding_samples, lambda w, i, padding, by_frequency: w[i]),
    OpRecord(
        "embedding_rows_gradient",
        _rows_samples,
        _rows,
        FLOATS,
        rtol=_ROUNDED,
        atol=_ROUNDED,
        torch="",
    ),
]
