"""Records of variance, standard deviation, covariance and correlation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import ALL_DTYPES, DType, float32, int64

from ...records import ErrorSample, OpRecord, Sample
from ..reductions import CANCELLATION, INEXACT

# Squared distances of numbers up to 9, computed in single and rounded once to half precision.
SQUARES = {"float16": 1e-1, "bfloat16": 1.0, "float32": 1e-4, "complex64": 1e-4}


def variance_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    """Yield reductions with each way to say the correction."""
    yield Sample(make(3, 4))
    yield Sample(make(3, 4), 1)
    yield Sample(make(2, 3, 2), (0, -1), keepdim=True)
    yield Sample(make(3, 4), False)
    yield Sample(make(3, 4), 0, False, True)
    yield Sample(make(3, 4), 0, unbiased=True)
    yield Sample(make(3, 4), 1, correction=2)
    yield Sample(make(4), correction=0.5)
    yield Sample(make(0, 3), 1)
    yield Sample(make(3, 4), (0, 1), keepdim=True, correction=0)
    yield Sample(make(), correction=0)


def _arguments(
    dim: Any = None,
    unbiased: Any = None,
    keepdim: bool = False,
    correction: Any = None,
) -> dict[str, Any]:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    return {"axis": dim, "ddof": correction, "keepdims": keepdim}


def _var(a: Any, *args: Any, **options: Any) -> Any:
    return np.var(a, **_arguments(*args, **options))


def _std(a: Any, *args: Any, **options: Any) -> Any:
    return np.std(a, **_arguments(*args, **options))


def _mean(a: Any, *args: Any, **options: Any) -> Any:
    named = _arguments(*args, **options)
    return np.mean(a, axis=named["axis"], keepdims=named["keepdims"])


def _errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(3, dtype=int64)), RuntimeError, "only support floating point")
    yield ErrorSample(Sample(make(3), 1), IndexError, "Dimension out of range")
    yield ErrorSample(Sample(make(3), 0, True, correction=1), TypeError, "both")


def _cov_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(3, 4))
    yield Sample(make(4))
    yield Sample(make(1, 4))
    yield Sample(make(3, 4), correction=0)
    counts = make(4, dtype=int64, low=1, high=3)
    yield Sample(make(3, 4), fweights=counts)
    precision = dtype.to_real() if dtype in INEXACT else float32
    importance = make(4, dtype=precision, low=1, high=3)
    yield Sample(make(3, 4), aweights=importance.detach())
    yield Sample(make(3, 4), fweights=counts, aweights=importance.detach())
    yield Sample(make(0, 4))
    yield Sample(make(), correction=0)


def _cov(a: Any, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    a = a.astype(np.float64) if a.dtype.kind in "iu" else a
    return np.cov(a, ddof=correction, fweights=fweights, aweights=aweights)


def _cov_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, 2, 2)), RuntimeError, "two or fewer dimensions")
    yield ErrorSample(Sample(make(2, 2), fweights=make(2)), RuntimeError, "integral dtype")
    yield ErrorSample(
        Sample(make(2, 2), fweights=make(3, dtype=int64, low=1)), RuntimeError, "same numel"
    )
    yield ErrorSample(
        Sample(make(2, 2), fweights=make(2, dtype=int64, low=-3, high=-1)), RuntimeError, "negative"
    )


def _corrcoef_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(3, 4))
    yield Sample(make(4))
    yield Sample(make(0, 4))


def _corrcoef(a: Any) -> Any:
    return np.corrcoef(a.astype(np.float64) if a.dtype.kind in "iu" else a)


_NUMBERS = tuple(
    dtype for dtype in ALL_DTYPES if dtype.itemsize > 2 and dtype.name not in ("uint32", "uint64")
)


RECORDS = [
    OpRecord("var", variance_samples, _var, dtypes=INEXACT, errors=_errors, atol=SQUARES),
    OpRecord("std", variance_samples, _std, dtypes=INEXACT, errors=_errors, atol=CANCELLATION),
    OpRecord(
        "var_mean",
        variance_samples,
        lambda *args, **options: (_var(*args, **options), _mean(*args, **options)),
        dtypes=INEXACT,
        errors=_errors,
        atol=SQUARES,
    ),
    OpRecord(
        "std_mean",
        variance_samples,
        lambda *args, **options: (_std(*args, **options), _mean(*args, **options)),
        dtypes=INEXACT,
        errors=_errors,
        atol=CANCELLATION,
    ),
    OpRecord("cov", _cov_samples, _cov, dtypes=_NUMBERS, errors=_cov_errors, atol=SQUARES),
    OpRecord("corrcoef", _corrcoef_samples, _corrcoef, dtypes=_NUMBERS, atol=CANCELLATION),
]
