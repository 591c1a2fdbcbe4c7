"""Records of distinct elements and membership."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import ALL_DTYPES, DType, bool_, complex128, float32

from ...records import ErrorSample, OpRecord, Sample
from ..reductions import NUMBERED, ORDERED, with_nan

_DATA = {"meta": "the shape depends on the data", "out": "the shape depends on the data"}


def unique_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    """Yield flat and slice-wise calls with each extra output."""
    yield Sample(make(9, low=0, high=3))
    yield Sample(make(3, 4, low=0, high=3), return_inverse=True)
    yield Sample(make(9, low=0, high=3), return_counts=True)
    yield Sample(make(9, low=0, high=3), return_inverse=True, return_counts=True)
    yield Sample(make(), return_inverse=True, return_counts=True)
    yield Sample(make(0), return_inverse=True, return_counts=True)
    yield Sample(make(5, 2, low=0, high=1), return_inverse=True, return_counts=True, dim=0)
    yield Sample(make(2, 5, 2, low=0, high=1), dim=1)
    if dtype is float32:
        yield Sample(with_nan(make(6)), return_inverse=True, return_counts=True, label="nan")


def _chosen(values: Any, inverse: Any, counts: Any, want: tuple[bool, bool]) -> Any:
    found = [values, *([inverse] if want[0] else []), *([counts] if want[1] else [])]
    return tuple(found) if len(found) > 1 else values


def _unique(
    a: Any, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    values, inverse, counts = np.unique(
        a, return_inverse=True, return_counts=True, axis=dim, equal_nan=False
    )
    inverse = inverse.reshape(a.shape if dim is None else -1)
    return _chosen(values, inverse, counts, (return_inverse, return_counts))


def _consecutive(
    a: Any, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    rows = a.reshape(-1) if dim is None else np.moveaxis(a, dim, 0)
    starts = np.ones(len(rows), np.bool_)
    differs = rows[1:] != rows[:-1]
    starts[1:] = differs if dim is None else differs.reshape(len(differs), -1).any(1)
    heads = np.flatnonzero(starts)
    counts = np.diff(np.append(heads, len(rows)))
    inverse = (np.cumsum(starts) - 1).reshape(a.shape if dim is None else -1)
    values = rows[heads] if dim is None else np.moveaxis(rows[heads], 0, dim)
    return _chosen(values, inverse, counts, (return_inverse, return_counts))


def _errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, 3), dim=2), IndexError, "Dimension out of range")
    yield ErrorSample(Sample(make(), dim=0), IndexError, "no dimensions")
    yield ErrorSample(Sample(make(2, 0), dim=0), RuntimeError, "size 0")


def _unique_errors(make: Any) -> Iterator[ErrorSample]:
    yield from _errors(make)
    yield ErrorSample(Sample(make(2, dtype=complex128)), NotImplementedError, "no order")


def _lexsort_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(6, 3, low=0, high=1))
    yield Sample(make(6, 0))


def _lexsort(a: Any) -> Any:
    return np.lexsort(a.T[::-1]) if a.shape[1] else np.arange(len(a))


def _isin_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(3, 4, low=0, high=5), make(3, low=0, high=5))
    yield Sample(make(3, 4, low=0, high=5), make(3, low=0, high=5), invert=True)
    yield Sample(make(3, 4, low=0, high=5), 2)
    yield Sample(2, make(3, low=0, high=5))
    yield Sample(make(60, low=0, high=90), make(40, low=0, high=90))
    yield Sample(make(3), make(0))
    yield Sample(make(), make())
    yield Sample(make(), make(1))
    yield Sample(make(0, 3), make(2, low=0, high=5))


def _isin(a: Any, b: Any, invert: bool = False) -> Any:
    return np.isin(a, b, invert=invert)


def _isin_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, dtype=bool_), make(2)), RuntimeError, "bool")
    yield ErrorSample(Sample(1, 2), TypeError, "must be Tensor")


RECORDS = [
    OpRecord("unique", unique_samples, _unique, dtypes=ORDERED, errors=_unique_errors, skips=_DATA),
    OpRecord(
        "unique_consecutive",
        unique_samples,
        _consecutive,
        dtypes=ALL_DTYPES,
        errors=_errors,
        skips=_DATA,
    ),
    OpRecord("lexsort", _lexsort_samples, _lexsort, dtypes=ORDERED, gradient=False, torch=""),
    OpRecord("isin", _isin_samples, _isin, dtypes=NUMBERED, gradient=False, errors=_isin_errors),
]
