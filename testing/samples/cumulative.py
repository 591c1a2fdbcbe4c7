"""Records of cumulative ops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import DType, complex128, float32, float64, int64

from ..records import ErrorSample, OpRecord, Sample
from .reductions import CANCELLATION, INEXACT, ORDERED, with_nan, zeroed


def cumulative_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    """Yield calls along the first, the last and no dimension."""
    yield Sample(make(5), 0)
    yield Sample(make(), 0)
    yield Sample(make(), -1)
    yield Sample(make(0, 3), 0)
    yield Sample(make(3, 0), 0)
    yield Sample(make(2, 3, 2), 1)
    yield Sample(make(2, 3), -1)


def _with_dtype(make: Any, dtype: DType) -> Iterator[Sample]:
    yield from cumulative_samples(make, dtype)
    yield Sample(make(2, 3), 0, dtype=complex128 if dtype.is_complex else float64)


def _product_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(4, low=-2, high=2), 0)
    yield Sample(make(), 0)
    yield Sample(make(0, 3), 0)
    yield Sample(make(2, 3, 2, low=-2, high=2), 1)
    yield Sample(zeroed(make, 1, 0, 1), 0, label="one zero")
    yield Sample(zeroed(make, 0, 1, 0, 1), 0, label="two zeros")


def _product_backward_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for sample in _product_samples(make, dtype):
        x, dim = sample.args
        yield Sample(make(*x.shape), x, dim, x.detach().cumprod(dim), label=sample.label)


def _product_backward(g: Any, x: Any, dim: int, _: Any) -> Any:
    """Return for each factor the sum over the products that it is in of what is left without it."""
    if not x.ndim:
        return g
    result = np.zeros_like(g)
    rows, weights, found = (np.moveaxis(a, dim, -1) for a in (x.conj(), g, result))
    for i in range(rows.shape[-1]):
        for k in range(i, rows.shape[-1]):
            others = np.delete(rows[..., : k + 1], i, -1)
            found[..., i] += weights[..., k] * others.prod(-1)
    return result


def _along(function: Any) -> Any:
    def reference(a: Any, dim: int, dtype: Any = None) -> Any:
        if not a.ndim:
            return a if a.dtype.kind not in "biu" else a.astype(np.int64)
        if a.dtype.kind in "biu":
            a = a.astype(np.int64)
        return function(a, axis=dim)

    return reference


def _check_logcumsumexp(result: Any, sample: Sample) -> None:
    """Compare the exponentials, relative to the largest: complex logarithms have many branches."""
    a, dim = sample.args[0].detach(), sample.args[1]
    wide = complex128 if a.is_complex() else float64
    got, a = result.detach().to(wide).cpu().numpy(), a.to(wide).cpu().numpy()
    if a.size:
        peak = np.max(a.real)
        wanted = np.cumsum(np.exp(a - peak), axis=dim) if a.ndim else np.exp(a - peak)
        tolerance = {2: 5e-2, 4: 1e-4, 8: 1e-4 if a.dtype.kind == "c" else 1e-9}
        np.testing.assert_allclose(
            np.exp(got - peak), wanted, atol=tolerance.get(sample.args[0].element_size(), 1e-9)
        )


def _dim_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, 3), 2), IndexError, "Dimension out of range")


def _log_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, dtype=int64), 0), NotImplementedError, "not implemented for")


def _extreme_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield from cumulative_samples(make, dtype)
    if dtype is float32:
        yield Sample(with_nan(make(6)), 0, label="nan")


def _extreme(better: Any) -> Any:
    def reference(a: Any, dim: int) -> Any:
        values, indices = np.array(a), np.zeros(a.shape, np.int64)
        if a.ndim and a.size:
            rows, order = np.moveaxis(values, dim, -1), np.moveaxis(indices, dim, -1)
            for place in np.ndindex(rows.shape[:-1]):
                row, where = rows[place], order[place]
                for i in range(1, len(row)):
                    beaten = np.isnan(row[i]) or (
                        not np.isnan(row[i - 1]) and better(row[i], row[i - 1])
                    )
                    where[i] = i if beaten else where[i - 1]
                    row[i] = row[i] if beaten else row[i - 1]
        return values, indices

    return reference


def _extreme_errors(make: Any) -> Iterator[ErrorSample]:
    yield from _dim_errors(make)
    yield ErrorSample(Sample(make(2, dtype=complex128), 0), NotImplementedError, "no order")


RECORDS = [
    OpRecord("cumsum", _with_dtype, _along(np.cumsum), errors=_dim_errors, atol=CANCELLATION),
    OpRecord(
        "cumprod", _product_samples, _along(np.cumprod), errors=_dim_errors, atol=CANCELLATION
    ),
    OpRecord(
        "cumprod_backward",
        _product_backward_samples,
        _product_backward,
        dtypes=INEXACT,
        atol=CANCELLATION,
        torch="",
    ),
    OpRecord(
        "logcumsumexp",
        cumulative_samples,
        check=_check_logcumsumexp,
        dtypes=INEXACT,
        errors=_log_errors,
        skips={"torch": "complex results may differ by a multiple of 2 pi i"},
    ),
    OpRecord(
        "cummax",
        _extreme_samples,
        _extreme(np.greater_equal),
        dtypes=ORDERED,
        errors=_extreme_errors,
    ),
    OpRecord(
        "cummin", _extreme_samples, _extreme(np.less_equal), dtypes=ORDERED, errors=_extreme_errors
    ),
]
