"""Records of distances."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import FLOATS, DType, float32, float64, int64
from tensorplug.core.ops.distances import minkowski_dist, pdist

from ..records import ErrorSample, OpRecord, Sample
from ._differences import ROUGH, by_differences
from .norms import norm
from .reductions import INEXACT

# A difference rounded in half precision, then its power and root.
_ROUNDING = {"float16": 6e-2, "bfloat16": 5e-1, "float32": 2e-4, "complex64": 2e-5}
_ROOTS = {"float16": 4e-3, "bfloat16": 2e-2, "float32": 1e-5, "complex64": 1e-5}


def _dist_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(3), make(3))
    yield Sample(make(2, 3), make(3), 1)
    yield Sample(make(2, 3), make(2, 3), p=math.inf)
    yield Sample(make(2, 3), make(), 3)
    yield Sample(make(0), make(0))
    yield Sample(make(0, 3), make(3), 1)


def _dist(a: Any, b: Any, p: float = 2) -> Any:
    return norm(a - b, p)


def _dist_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(3, dtype=int64), make(3, dtype=int64)), RuntimeError, "floating")


def cdist_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    """Yield each order and each way to compute, batches, and no points."""
    yield Sample(make(2, 3), make(4, 3))
    yield Sample(make(2, 3), make(4, 3), 1.0)
    yield Sample(make(2, 3), make(4, 3), p=3.0)
    yield Sample(make(2, 3), make(4, 3), p=math.inf)
    yield Sample(make(2, 1, 3), make(2, 2, 3))
    yield Sample(make(2, 3), make(4, 3), compute_mode="donot_use_mm_for_euclid_dist")
    yield Sample(make(0, 3), make(4, 3))
    yield Sample(make(2, 0), make(4, 0))
    if dtype in (float32, float64):
        yield Sample(make(2, 3), make(4, 3), compute_mode="use_mm_for_euclid_dist")
        yield Sample(make(30, 3), make(2, 3))


def _cdist(a: Any, b: Any, p: float = 2.0, compute_mode: Any = None) -> Any:
    difference = np.abs(a[..., :, None, :] - b[..., None, :, :])
    if not difference.shape[-1]:
        return np.zeros(difference.shape[:-1])
    return norm(difference, p, -1)


def _cdist_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, 3), make(2, 4)), RuntimeError, "same number of columns")
    yield ErrorSample(Sample(make(3), make(2, 3)), RuntimeError, "at least 2D")
    yield ErrorSample(Sample(make(2, 3), make(2, 3), -1.0), RuntimeError, "non-negative p")
    yield ErrorSample(
        Sample(make(2, 3), make(2, 3), compute_mode="x"), ValueError, "not a valid value"
    )
    yield ErrorSample(Sample(make(2, 3, dtype=int64), make(2, 3)), RuntimeError, "floating-point")


def _euclidean_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 3), make(4, 3))
    yield Sample(make(2, 1, 3), make(2, 3))
    yield Sample(make(0, 3), make(4, 3))
    yield Sample(make(2, 0), make(4, 0))


def _pdist_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(4, 3))
    yield Sample(make(4, 3), 1.0)
    yield Sample(make(4, 3), p=math.inf)
    yield Sample(make(1, 3))


def _pdist(a: Any, p: float = 2.0) -> Any:
    return _cdist(a, a, p)[np.triu_indices(len(a), 1)]


def _pdist_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(3)), RuntimeError, "2D")
    yield ErrorSample(Sample(make(2, 3), -1.0), RuntimeError, "non-negative p")


def _minkowski_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for p in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, math.inf):
        yield Sample(make(2, 3), make(4, 3), p)
    yield Sample(make(2, 1, 2, 3), make(3, 70, 3), 2.0)
    yield Sample(make(0, 3), make(4, 3), 2.0)


def _minkowski_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, 3), make(2, 4), 2.0), RuntimeError, "as many numbers")


def _slopes_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for p in (1.0, 1.5, 2.0, 3.0):
        x1, x2 = make(2, 2, 3), make(2, 4, 3)
        yield Sample(make(2, 2, 4), x1, x2, p, minkowski_dist(x1, x2, p).detach())
    yield Sample(make(0, 2), make(0, 3), make(2, 3), 2.0, make(0, 2))


def _slopes(g: Any, x1: Any, x2: Any, p: float, _: Any) -> Any:
    return by_differences(_cdist, 0, 1)(g, x1, x2, p)


def _triangle_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for p in (1.0, 1.5, 2.0, 3.0):
        x = make(4, 3)
        yield Sample(make(6), x, p, pdist(x, p).detach())
    yield Sample(make(0), make(1, 3), 2.0, make(0))


def _triangle(g: Any, x: Any, p: float, _: Any) -> Any:
    return by_differences(_pdist, 0)(g, x, p)


def _triangle_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(5), make(4, 3), 2.0, make(5)), RuntimeError, "per pair")


def _renorm_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 3), 2, 0, 1.0)
    yield Sample(make(2, 3), 1, -1, 5.0)
    yield Sample(make(2, 3, 2), math.inf, 1, 6.0)
    yield Sample(make(0, 3), 2, 1, 1.0)


def _renorm(a: Any, p: float, dim: int, maxnorm: float) -> Any:
    others = tuple(d for d in range(a.ndim) if d != dim % a.ndim)
    if not a.size:
        return a
    size = norm(a, p, others, True)
    return np.where(size > maxnorm, a * (maxnorm / (size + 1e-7)), a)


def _renorm_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, 3), 0, 0, 1.0), RuntimeError, "non-positive-norm")
    yield ErrorSample(Sample(make(2, 3), 2, 0, -1.0), RuntimeError, "maxnorm to be >= 0")
    yield ErrorSample(Sample(make(3), 2, 0, 1.0), RuntimeError, "at least 2 dimensions")


RECORDS = [
    OpRecord(
        "dist",
        _dist_samples,
        _dist,
        dtypes=INEXACT,
        errors=_dist_errors,
        atol=_ROUNDING,
        rtol=_ROOTS,
    ),
    OpRecord(
        "cdist",
        cdist_samples,
        _cdist,
        dtypes=FLOATS,
        errors=_cdist_errors,
        atol=_ROUNDING,
        rtol=_ROOTS,
    ),
    OpRecord("euclidean_dist", _euclidean_samples, _cdist, dtypes=(float64,), torch=""),
    OpRecord(
        "minkowski_dist",
        _minkowski_samples,
        _cdist,
        (float32, float64),
        errors=_minkowski_errors,
        atol=_ROUNDING,
        rtol=_ROOTS,
        torch="",
    ),
    OpRecord(
        "minkowski_dist_backward",
        _slopes_samples,
        _slopes,
        (float32, float64),
        atol=ROUGH,
        rtol=_ROOTS,
        torch="",
    ),
    OpRecord(
        "pdist_backward",
        _triangle_samples,
        _triangle,
        (float32, float64),
        errors=_triangle_errors,
        atol=ROUGH,
        rtol=_ROOTS,
        torch="",
    ),
    OpRecord(
        "pdist",
        _pdist_samples,
        _pdist,
        dtypes=FLOATS,
        errors=_pdist_errors,
        atol=_ROUNDING,
        rtol=_ROOTS,
    ),
    OpRecord(
        "renorm",
        _renorm_samples,
        _renorm,
        dtypes=INEXACT,
        errors=_renorm_errors,
        atol=_ROUNDING,
        rtol=_ROOTS,
    ),
]
