"""Records of sorting, selection by order, and nonzero."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import INTEGRAL, DType, complex128, float32

from ...records import ErrorSample, OpRecord, Sample
from ..reductions import NUMBERED, ORDERED, one_dim_samples, with_nan

_TIES = {"torch": "the indices of equal elements are unspecified there"}


def sort_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    """Yield sorts along each dimension in both orders."""
    yield Sample(make(7), stable=True)
    yield Sample(make(), stable=True)
    yield Sample(make(3, 4), dim=0, stable=True)
    yield Sample(make(3, 4), dim=-1, descending=True, stable=True)
    yield Sample(make(2, 5, 2), dim=1, descending=True, stable=True)
    yield Sample(make(0, 3), stable=True)
    yield Sample(make(2, 0), stable=True)
    if dtype is float32:
        yield Sample(with_nan(make(8)), stable=True, label="nan")
        yield Sample(with_nan(make(8)), descending=True, stable=True, label="nan")


def _argsort(a: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    if not a.ndim:
        return np.zeros((), np.int64)
    if not descending:
        return np.argsort(a, axis=dim, kind="stable")
    # The place of each element among those greater, and equal ones before it.
    ranks = np.unique(a, return_inverse=True, equal_nan=True)[1].reshape(a.shape)
    return np.argsort(-ranks, axis=dim, kind="stable")


def _take(a: Any, order: Any, dim: int) -> Any:
    return np.take_along_axis(a, order, axis=dim) if a.ndim else a


def _sort(a: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    order = _argsort(a, dim, descending)
    return _take(a, order, dim), order


def _sort_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, 3), 2), IndexError, "Dimension out of range")
    yield ErrorSample(Sample(make(2, dtype=complex128)), RuntimeError, "no order")


def _msort_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(7))
    yield Sample(make())
    yield Sample(make(3, 4))
    yield Sample(make(0, 3))


def _msort(a: Any) -> Any:
    return np.sort(a, axis=0) if a.ndim else a


def topk_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    """Yield selections of few and many."""
    yield Sample(make(7), 3)
    yield Sample(make(40), 3)
    yield Sample(make(2, 30), 2, largest=False)
    yield Sample(make(), 1)
    yield Sample(make(3, 4), 2, 0, True)
    yield Sample(make(3, 0), 2, 0, True)
    yield Sample(make(3, 4), 3, -1, False)
    yield Sample(make(3, 4), 0)
    yield Sample(make(0, 3), 2)
    if dtype is float32:
        yield Sample(with_nan(make(8)), 3, label="nan")


def _check_topk(result: Any, sample: Sample) -> None:
    """Compare the values, and what the indices point to: which of equal elements is free."""
    a = sample.args[0].detach().cpu().double().numpy()
    k, dim, largest = (*sample.args[1:], *(-1, True)[len(sample.args) - 2 :])[:3]
    largest = sample.kwargs.get("largest", largest)
    values, indices = (r.detach().cpu().double().numpy() for r in result)
    order = _argsort(a, dim, largest)
    if a.ndim:
        order = np.take(order, range(k), axis=dim)
    np.testing.assert_array_equal(values, _take(a, order, dim))
    np.testing.assert_array_equal(_take(a, indices.astype(np.int64), dim), values)


def _topk_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(3), 4), RuntimeError, "out of range")
    yield ErrorSample(Sample(make(3), -1), RuntimeError, "out of range")


def _kth_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(7), 3)
    yield Sample(make(), 1)
    yield Sample(make(3, 4), 2, 0)
    yield Sample(make(4, 3), 4, 0, False)
    yield Sample(make(3, 4), 4, -1, True)
    yield Sample(make(0, 3), 2)


def _kthvalue(a: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    if not a.ndim:
        return a, np.zeros((), np.int64)
    place = np.take(_argsort(a, dim), [k - 1], axis=dim)
    found = _take(a, place, dim), place
    return found if keepdim else tuple(np.squeeze(f, axis=dim) for f in found)


def _kth_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(3), 4), RuntimeError, "out of range")
    yield ErrorSample(Sample(make(3), 0), RuntimeError, "out of range")
    yield ErrorSample(Sample(make(0), 1), IndexError, "non-zero size")


def _median(ignore_nan: bool) -> Any:
    def reference(a: Any, dim: Any = None, keepdim: bool = False) -> Any:
        rows = a.reshape(-1) if dim is None else a
        if not rows.ndim:
            return a, np.zeros((), np.int64)
        axis = 0 if dim is None else dim
        order = _argsort(rows, axis)
        size = rows.shape[axis]
        numbers = np.sum(~np.isnan(rows), axis=axis, keepdims=True)
        place = np.maximum((numbers - 1) // 2, 0)
        if not ignore_nan:
            place = np.where(numbers < size, numbers, (size - 1) // 2)
        index = np.take_along_axis(order, place, axis)
        value = np.take_along_axis(rows, index, axis)
        if dim is None:
            return value[0]
        return (value, index) if keepdim else (np.squeeze(value, axis), np.squeeze(index, axis))

    return reference


def _dim_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, 0), 1), IndexError, "non-zero size")
    yield ErrorSample(Sample(make(2, 3), 2), IndexError, "Dimension out of range")


def _mode_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(9, low=0, high=3))
    yield Sample(make(9, low=0, high=3), 0, True)
    yield Sample(make())
    yield Sample(make(3, 4), 0)
    yield Sample(make(3, 4, low=0, high=2), -1, True)
    yield Sample(make(0, 3))


def _mode(a: Any, dim: int = -1, keepdim: bool = False) -> Any:
    if not a.ndim:
        return a, np.zeros((), np.int64)
    rows = np.moveaxis(a, dim, -1)
    values, indices = np.empty(rows.shape[:-1], a.dtype), np.empty(rows.shape[:-1], np.int64)
    for place in np.ndindex(rows.shape[:-1]):
        found, counts = np.unique(rows[place], return_counts=True)
        values[place] = found[np.argmax(counts)]
        indices[place] = np.flatnonzero(rows[place] == values[place])[-1]
    if keepdim:
        return np.expand_dims(values, dim), np.expand_dims(indices, dim)
    return values, indices


def nonzero_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    """Yield tensors of several dimensions with and without zeros."""
    yield Sample(make(6, low=-1, high=1))
    yield Sample(make())
    yield Sample(make(0, 3))
    yield Sample(make(2, 3, 2, low=-1, high=1))


def _public_nonzero_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield from nonzero_samples(make, dtype)
    yield Sample(make(2, 3, low=-1, high=1), as_tuple=True)
    yield Sample(make(), as_tuple=True)


def _nonzero(a: Any, as_tuple: bool = False) -> Any:
    if as_tuple:
        return np.nonzero(np.atleast_1d(a))
    return np.argwhere(a)


def _static_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(6, low=-1, high=1), size=3)
    yield Sample(make(2, 3), size=20, fill_value=7)
    yield Sample(make(0, 3), size=2)


def _nonzero_static(a: Any, size: int, fill_value: int = -1) -> Any:
    found = np.argwhere(a)[:size]
    return np.pad(found, ((0, size - len(found)), (0, 0)), constant_values=fill_value)


def _static_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2), size=-1), RuntimeError, "non-negative")


def _unravel_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(6, low=0, high=5), (2, 3))
    yield Sample(make(2, 2, low=0, high=5), [1, 2, 3])
    yield Sample(make(low=0, high=5), 6)
    yield Sample(make(0), (2, 3))


def _unravel(indices: Any, shape: Any) -> Any:
    return np.unravel_index(indices.astype(np.int64), shape)


def _unravel_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, dtype=float32), (2, 3)), TypeError, "integers")
    yield ErrorSample(Sample(make(2), (2, -3)), ValueError, "non-negative")


_DATA = {"meta": "the shape depends on the data", "out": "the shape depends on the data"}


RECORDS = [
    OpRecord(
        "argsort", sort_samples, _argsort, dtypes=ORDERED, gradient=False, errors=_sort_errors
    ),
    OpRecord("sort", sort_samples, _sort, dtypes=ORDERED, errors=_sort_errors),
    OpRecord("msort", _msort_samples, _msort, dtypes=ORDERED),
    OpRecord(
        "topk", topk_samples, check=_check_topk, dtypes=ORDERED, errors=_topk_errors, skips=_TIES
    ),
    OpRecord("kthvalue", _kth_samples, _kthvalue, dtypes=NUMBERED, errors=_kth_errors, skips=_TIES),
    OpRecord(
        "median", one_dim_samples, _median(False), dtypes=NUMBERED, errors=_dim_errors, skips=_TIES
    ),
    OpRecord(
        "nanmedian",
        one_dim_samples,
        _median(True),
        dtypes=NUMBERED,
        errors=_dim_errors,
        skips=_TIES,
    ),
    OpRecord(
        "median_all",
        lambda make, dtype: [
            Sample(make(5), False),
            Sample(make(2, 2), True),
            Sample(make(), False),
        ],
        lambda a, ignore_nan: _median(ignore_nan)(a),
        dtypes=NUMBERED,
        torch="",
        never_empty="median and nanmedian answer for no elements themselves",
    ),
    OpRecord("mode", _mode_samples, _mode, dtypes=ORDERED, errors=_dim_errors),
    OpRecord("nonzero", _public_nonzero_samples, _nonzero, gradient=False, skips=_DATA),
    OpRecord("argwhere", nonzero_samples, _nonzero, gradient=False, skips=_DATA),
    OpRecord(
        "nonzero_static",
        _static_samples,
        _nonzero_static,
        gradient=False,
        errors=_static_errors,
        skips={"meta": "the number of elements found depends on the data"},
    ),
    OpRecord(
        "unravel_index",
        _unravel_samples,
        _unravel,
        dtypes=INTEGRAL,
        gradient=False,
        errors=_unravel_errors,
    ),
]
