"""Records of softmax and its kin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import tensorplug.nn  # noqa: F401  registers the ops
from tensorplug.core.device.dtypes import ALL_DTYPES, FLOATS, DType, float32, float64, int64

from ..records import ErrorSample, OpRecord, Sample
from .random import _RANDOM as RANDOM

# One rounding of the result in half precision, of a logarithm up to about 20.
HALVES = {"float16": 1e-2, "bfloat16": 6e-2}


def softmax_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    """Yield calls along each dimension, and over large elements."""
    yield Sample(make(4), 0)
    yield Sample(make(), 0)
    yield Sample(make(2, 3, 2), 1)
    yield Sample(make(2, 3), -1)
    yield Sample(make(0, 3), 0)
    yield Sample(make(3, 0), -1)
    yield Sample(make(2, 3), 0, dtype=float64)
    if dtype in (float32, float64):
        yield Sample(make(2, 3) * 1000, 1, label="large")


def _softmax(a: Any, dim: int, dtype: Any = None) -> Any:
    if not a.size:
        return a
    e = np.exp(a - np.max(a, axis=dim if a.ndim else None, keepdims=True))
    return e / np.sum(e, axis=dim if a.ndim else None, keepdims=True)


def _log_softmax(a: Any, dim: int, dtype: Any = None) -> Any:
    if not a.size:
        return a
    axis = dim if a.ndim else None
    shifted = a - np.max(a, axis=axis, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def _softmin(a: Any, dim: int, dtype: Any = None) -> Any:
    return _softmax(-a, dim)


def _errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, 3), 2), IndexError, "Dimension out of range")
    yield ErrorSample(Sample(make(2, dtype=int64), 0), NotImplementedError, "not implemented for")
    yield ErrorSample(Sample(make(2), None), TypeError, "must be int")


def _logsumexp_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(4), 0)
    yield Sample(make(), 0)
    yield Sample(make(2, 3, 2), 1)
    yield Sample(make(2, 3), (0, 1))
    yield Sample(make(2, 3), -1, keepdim=True)
    yield Sample(make(0, 3), 0)
    yield Sample(make(0, 3), (1,), False)
    if dtype in (float32, float64):
        yield Sample(make(2, 3) * 1000, 1, label="large")


def _logsumexp(a: Any, dim: Any, keepdim: bool = False) -> Any:
    a = a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)
    axis = dim if a.ndim else ()
    if not a.size:
        return np.log(np.sum(np.exp(a), axis=axis, keepdims=keepdim))
    peak = np.max(a.real, axis=axis, keepdims=True)
    total = np.log(np.sum(np.exp(a - peak), axis=axis, keepdims=True)) + peak
    return total if keepdim else np.squeeze(total, axis=axis)


def _with_gradient(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 3), make(2, 3), 1)
    yield Sample(make(2, 3, 2), make(2, 3, 2), 1)
    yield Sample(make(), make(), 0)
    yield Sample(make(0, 3), make(0, 3), 0)


def _along(a: Any, dim: int) -> Any:
    return np.sum(a, axis=dim if a.ndim else None, keepdims=True)


def _dim_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, 3), 2), IndexError, "Dimension out of range")


def _gumbel_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(3, 4))
    yield Sample(make(3, 4), 0.5, True, 1e-10, 0)
    yield Sample(make(0, 4))


def _sums_to_one(result: Any, sample: Sample) -> None:
    dim = sample.args[4] if len(sample.args) > 4 else -1
    sums = result.to(float32).sum(dim)
    assert bool(((sums - 1).abs() < 2e-2).all())


RECORDS = [
    OpRecord(
        "gumbel_softmax",
        _gumbel_samples,
        dtypes=FLOATS,
        gradient=False,
        check=_sums_to_one,
        skips=RANDOM,
        torch="",
    ),
    OpRecord("softmax", softmax_samples, _softmax, dtypes=FLOATS, errors=_errors, atol=HALVES),
    OpRecord(
        "log_softmax", softmax_samples, _log_softmax, dtypes=FLOATS, errors=_errors, atol=HALVES
    ),
    OpRecord(
        "softmin",
        softmax_samples,
        _softmin,
        dtypes=FLOATS,
        atol=HALVES,
        torch="nn.functional.softmin",
    ),
    OpRecord(
        "logsumexp",
        _logsumexp_samples,
        _logsumexp,
        dtypes=ALL_DTYPES,
        errors=_dim_errors,
        atol=HALVES,
    ),
    OpRecord(
        "softmax_backward",
        _with_gradient,
        lambda g, y, dim: g * y - y * _along(g * y, dim),
        dtypes=FLOATS,
        torch="",
        atol=HALVES,
        rtol={"float16": 1e-2},  # a difference of products that were rounded, each to 11 bits
    ),
    OpRecord(
        "log_softmax_backward",
        _with_gradient,
        lambda g, y, dim: g - np.exp(y) * _along(g, dim),
        dtypes=FLOATS,
        torch="",
        atol=HALVES,
    ),
]
