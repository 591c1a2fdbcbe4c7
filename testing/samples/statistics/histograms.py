"""Records of histograms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import FLOATS, INTEGRAL, DType, float32, float64, int64

from ...records import ErrorSample, OpRecord, Sample

_SHAPE = {"meta": "the number of bins depends on the data", "out": "the shape depends on the data"}
_RANGE = {"meta": "the range of the bins depends on the data"}

# Bins of half precision are computed in single, those of the reference in double.
_WIDE = (float32, float64)


def _bincount_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(9, low=0, high=5))
    yield Sample(make(9, low=0, high=5), minlength=8)
    yield Sample(make(9, low=0, high=5), make(9, dtype=float32))
    yield Sample(make(9, low=0, high=5), weights=make(9, dtype=int64))
    yield Sample(make(0), minlength=3)
    yield Sample(make(0))


def _bincount(a: Any, weights: Any = None, minlength: int = 0) -> Any:
    return np.bincount(a.astype(np.int64), weights, minlength)


def _bincount_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, dtype=float32)), NotImplementedError, "integers")
    yield ErrorSample(Sample(make(2, dtype=int64, low=-3, high=-1)), RuntimeError, "non-negative")
    yield ErrorSample(Sample(make(2, 2, dtype=int64)), RuntimeError, "1-d")
    yield ErrorSample(
        Sample(make(2, dtype=int64, low=0), make(3)), RuntimeError, "same length as input"
    )
    yield ErrorSample(Sample(make(2, dtype=int64, low=0), minlength=-1), RuntimeError, ">= 0")


def _histc_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(20))
    yield Sample(make(4, 5), 7, -6, 5)
    yield Sample(make(20), bins=5, min=-3, max=4.5)
    yield Sample(make(), 3)
    yield Sample(make(3) * 0 + 1, 4, label="equal")
    yield Sample(make(0), 4, -1, 1)
    yield Sample(make(0, 2), 3)


def _histc(a: Any, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    if min == max == 0:
        min, max = (a.min(), a.max()) if a.size else (0, 0)
    if min == max:
        min, max = min - 1, max + 1
    return np.histogram(a, bins, (min, max))[0].astype(np.float64)


def _histc_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(3), 0), RuntimeError, "bins must be > 0")
    yield ErrorSample(Sample(make(3), 4, 3, 2), RuntimeError, "larger than min")
    yield ErrorSample(Sample(make(3, dtype=int64), 4), NotImplementedError, "not implemented for")


def _histogram_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(20), 5)
    yield Sample(make(4, 5), 5, range=(-5.0, 5.0), weight=make(4, 5).detach())
    yield Sample(make(20), make(6).sort()[0].detach())
    yield Sample(make(20), 4, density=True)
    yield Sample(make(0), 4)
    yield Sample(make(), 4, range=(-9.0, 9.0))
    yield Sample(make(0, 2), make(4).sort()[0].detach())


def _histogram(
    a: Any, bins: Any, range: Any = None, weight: Any = None, density: bool = False
) -> Any:
    return np.histogram(a, bins, range, density, weight)


def _histogram_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(3), 0), RuntimeError, "bins must be > 0")
    yield ErrorSample(Sample(make(3), 3, range=(2.0, 1.0)), RuntimeError, "larger than min")
    yield ErrorSample(Sample(make(3), 3, weight=make(2)), RuntimeError, "should have the same shape")
    yield ErrorSample(Sample(make(3), make(3, dtype=float32)), RuntimeError, "same dtype")


def _histogramdd_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(20, 2), 3)
    yield Sample(make(20, 2), [3, 4], range=[-5.0, 5.0, -4.0, 4.0])
    yield Sample(make(4, 5, 2), [3, 2], weight=make(4, 5).detach(), density=True)
    yield Sample(make(20, 2), [make(4).sort()[0].detach(), make(5).sort()[0].detach()])
    yield Sample(make(0, 2), [3, 2])


def _check_histogramdd(result: Any, sample: Sample) -> None:
    points = sample.args[0].double().numpy(force=True)
    points = points.reshape(-1, points.shape[-1])
    bins = sample.args[1]
    if not isinstance(bins, int):
        bins = [b if isinstance(b, int) else b.double().numpy(force=True) for b in bins]
    weight = sample.kwargs.get("weight")
    bounds = sample.kwargs.get("range")
    hist, edges = np.histogramdd(
        points,
        bins,
        None if bounds is None else list(zip(bounds[::2], bounds[1::2], strict=True)),
        sample.kwargs.get("density", False),
        None if weight is None else weight.double().numpy(force=True).reshape(-1),
    )
    np.testing.assert_allclose(result.hist.double().numpy(force=True), hist, rtol=1e-4, atol=1e-5)
    for got, wanted in zip(result.bin_edges, edges, strict=True):
        np.testing.assert_allclose(got.double().numpy(force=True), wanted, rtol=1e-5, atol=1e-6)


def _histogramdd_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(3), 2), RuntimeError, "at least 2 dimensions")
    yield ErrorSample(Sample(make(3, 2), [2]), RuntimeError, "innermost dimension")
    yield ErrorSample(Sample(make(3, 2), 2, range=[0.0, 1.0]), RuntimeError, "two bounds")


def _grid(make: Any, dtype: DType) -> Iterator[Sample]:
    columns, rows = make(7).sort()[0], make(4).sort()[0]
    yield Sample(make(40, 2), [columns, rows])
    yield Sample(make(2, 40).T, [rows, columns], make(40))
    yield Sample(make(40, 1), [columns], make(40))
    yield Sample(make(0, 2), [columns, rows])


RECORDS = [
    OpRecord(
        "bincount",
        _bincount_samples,
        _bincount,
        dtypes=INTEGRAL,
        gradient=False,
        errors=_bincount_errors,
        skips=_SHAPE,
    ),
    OpRecord(
        "grid_counts",
        _grid,
        lambda points, edges, weight=None: np.histogramdd(points, edges, weights=weight)[0],
        dtypes=_WIDE,
        gradient=False,
        torch="",
    ),
    OpRecord(
        "histogram_counts",
        lambda make, dtype: [
            Sample(make(50), make(9).sort()[0]),
            Sample(make(0), make(4).sort()[0]),
        ],
        lambda a, edges: np.histogram(a, edges)[0],
        dtypes=_WIDE,
        gradient=False,
        torch="",
    ),
    OpRecord(
        "histc",
        _histc_samples,
        _histc,
        dtypes=FLOATS,
        gradient=False,
        errors=_histc_errors,
        skips=_RANGE,
    ),
    OpRecord(
        "histogram",
        _histogram_samples,
        _histogram,
        dtypes=_WIDE,
        gradient=False,
        errors=_histogram_errors,
        skips=_RANGE,
    ),
    OpRecord(
        "histogramdd",
        _histogramdd_samples,
        check=_check_histogramdd,
        dtypes=_WIDE,
        gradient=False,
        errors=_histogramdd_errors,
        skips=_RANGE,
    ),
]
