"""Records of the adjoints of reading at positions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import ALL_DTYPES, DType, bool_, int64

from ...records import ErrorSample, OpRecord, Sample
from .gather import _ROUNDED, _gather
from .indexing import _key, positions

_NUMBERS = tuple([dtype for dtype in ALL_DTYPES if dtype is not bool_])


def _numbered(shape: Any) -> Any:
    """Return an array that holds the flat place of each element."""
    return np.arange(np.prod(shape, dtype=np.int64)).reshape(shape)


def _spread(g: Any, shape: Any, places: Any) -> Any:
    result = np.zeros(np.prod(shape, dtype=np.int64), g.dtype)
    np.add.at(result, places.reshape(-1), g.reshape(-1))
    return result.reshape(shape)


def _gathered_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(3, 2), (3, 4), 1, make(3, 2, dtype=int64, low=0, high=3))
    yield Sample(make(5, 2), (3, 4), 0, make(5, 2, dtype=int64, low=0, high=2))
    yield Sample(make(2, 1, 4), (2, 3, 4), 1, make(2, 1, 4, dtype=int64, low=0, high=2))
    yield Sample(make(2), (), 0, positions(make, [0, 0]))
    yield Sample(make(0, 2), (3, 4), 1, make(0, 2, dtype=int64))


def _indexed_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    at = positions(make, [0, -1, 1, 1])
    yield Sample(make(4, 4), (3, 4), [at])
    yield Sample(make(3, 4), (3, 4), [None, at])
    yield Sample(make(4), (3, 4), [at, at])
    yield Sample(make(4, 2), (3, 2, 4), [at, None, at])
    yield Sample(make(2, 2, 4), (2, 3, 4), [None, at, positions(make, [[0], [3]])])
    yield Sample(make(0, 4), (3, 4), [positions(make, [])])


def _indexed_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(1), (3,), [positions(make, [3])]), IndexError, "out of bounds")


RECORDS = [
    OpRecord(
        "gather_backward",
        _gathered_samples,
        lambda g, shape, dim, index: _spread(g, shape, _gather(_numbered(shape), dim, index)),
        _NUMBERS,
        rtol=_ROUNDED,
        atol=_ROUNDED,
        torch="",
    ),
    OpRecord(
        "index_backward",
        _indexed_samples,
        lambda g, shape, indices: _spread(g, shape, _numbered(shape)[_key(indices)]),
        _NUMBERS,
        errors=_indexed_errors,
        rtol=_ROUNDED,
        atol=_ROUNDED,
        torch="",
    ),
]
