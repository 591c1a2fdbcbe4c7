"""Records of choice by a mask."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import DType, bool_, int64

from ..records import ErrorSample, OpRecord, Sample
from .indexing.indexing import positions


def _masks(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(3, 4), make(3, 4, dtype=bool_))
    yield Sample(make(3, 1), make(4, dtype=bool_))
    yield Sample(make(), make(dtype=bool_))
    yield Sample(make(70), make(70, dtype=bool_))
    yield Sample(make(0), make(0, dtype=bool_))


def _masked_select(a: Any, mask: Any) -> Any:
    a, mask = np.broadcast_arrays(a, mask)
    return a[mask]


def _mask_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(3), make(3)), RuntimeError, "BoolTensor")


def _masked_values(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(3, 4), make(3, 4, dtype=bool_), make(12))
    yield Sample(make(3, 4), make(4, dtype=bool_), make(3, 5))
    yield Sample(make(4), make(3, 4, dtype=bool_), make(3, 5))
    yield Sample(make(), make(dtype=bool_), make(1))
    yield Sample(make(0, 2), make(0, 2, dtype=bool_), make(0))


def _masked_scatter(a: Any, mask: Any, source: Any) -> Any:
    a, mask = np.broadcast_arrays(a, mask)
    result = a.copy()
    result[mask] = source.reshape(-1)[: int(mask.sum())]
    return result


def _value_errors(make: Any) -> Iterator[ErrorSample]:
    mask = positions(make, [True, True], bool_)
    yield ErrorSample(Sample(make(2), mask, make(1)), RuntimeError, "Number of elements of source")


_DATA = {"meta": "where the mask is True is data"}


def _where_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(4, dtype=bool_), make(4), make(4))
    yield Sample(make(3, 1, dtype=bool_), make(4), make())
    yield Sample(make(dtype=bool_), make(), make())
    yield Sample(make(0, dtype=bool_), make(0), make(1))
    if dtype is not bool_:
        yield Sample(make(4, dtype=bool_), make(4), 2)
        yield Sample(make(4, dtype=bool_), 3, make(4))


def _where_errors(make: Any) -> Iterator[ErrorSample]:
    condition = make(3, dtype=int64)
    yield ErrorSample(Sample(condition, make(3), make(3)), RuntimeError, "boolean tensor")
    yield ErrorSample(Sample(make(3, dtype=bool_), make(3)), TypeError, "both values")


def _masked_fill_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(4), make(4, dtype=bool_), 1)
    yield Sample(make(2, 3), make(3, dtype=bool_), make())
    yield Sample(make(3), make(2, 1, dtype=bool_), 0)
    yield Sample(make(), make(dtype=bool_), 1)
    yield Sample(make(0, 3), make(3, dtype=bool_), 1)


def _masked_fill(a: Any, mask: Any, value: Any) -> Any:
    return np.where(mask, np.asarray(value).astype(a.dtype), a)


def _masked_fill_errors(make: Any) -> Iterator[ErrorSample]:
    mask = make(3, dtype=bool_)
    yield ErrorSample(Sample(make(3), make(3, dtype=int64), 1), RuntimeError, "boolean masks")
    yield ErrorSample(Sample(make(3), mask, make(1)), RuntimeError, "0-dimensional")
    yield ErrorSample(Sample(make(3), mask, 1j), RuntimeError, "without overflow")


def _fill_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 3), 1)
    yield Sample(make(3), make())
    yield Sample(make(), 2)
    yield Sample(make(0, 2), make())


def _fill_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(3), make(1)), RuntimeError, "0-dimensional")


RECORDS = [
    OpRecord("masked_select", _masks, _masked_select, errors=_mask_errors, skips=_DATA),
    OpRecord("masked_scatter", _masked_values, _masked_scatter, errors=_value_errors, skips=_DATA),
    OpRecord("fill", _fill_samples, np.full_like, errors=_fill_errors),
    OpRecord("masked_fill", _masked_fill_samples, _masked_fill, errors=_masked_fill_errors),
    OpRecord("where", _where_samples, np.where, errors=_where_errors),
]
