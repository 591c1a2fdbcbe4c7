"""Records of quantiles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import DType, float16, float32, float64

from ...records import ErrorSample, OpRecord, Sample
from ..reductions import with_nan

_WIDE = (float32, float64)


def quantile_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    """Yield one and several levels, all interpolations."""
    yield Sample(make(7), 0.3)
    yield Sample(make(), 0.3)
    yield Sample(make(3, 4), make(2, low=0, high=1).detach(), 1)
    yield Sample(make(3, 4), make(2, low=0, high=1).detach(), 0, True)
    yield Sample(make(3, 4), 0.5, keepdim=True)
    yield Sample(make(3, 4), 1.0, -1)
    for way in ("lower", "higher", "midpoint", "nearest"):
        yield Sample(make(3, 4), 0.3, 1, interpolation=way)
    yield Sample(make(2, 3, 4), make(14, low=0, high=1).detach(), 2, interpolation="midpoint")
    yield Sample(make(3, 4), make(0).detach(), 1)
    if dtype is float32:
        yield Sample(with_nan(make(3, 6)), 0.3, 1, label="nan")


def _quantile(function: Any) -> Any:
    def reference(
        a: Any, q: Any, dim: Any = None, keepdim: bool = False, interpolation: str = "linear"
    ) -> Any:
        return function(a, q, dim if a.ndim else None, keepdims=keepdim, method=interpolation)

    return reference


def _errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(3), 1.5), RuntimeError, r"range \[0, 1\]")
    yield ErrorSample(Sample(make(3), 0.5, interpolation="x"), RuntimeError, "one of linear")
    yield ErrorSample(Sample(make(0), 0.5), RuntimeError, "non-empty")
    yield ErrorSample(Sample(make(3), make(1, 1, low=0, high=1)), RuntimeError, "scalar or 1D")
    yield ErrorSample(Sample(make(3, dtype=float16), 0.5), RuntimeError, "float or double")


# The place between two elements is a product in single precision, as in torch.
_PLACES = {"float32": 1e-4}


RECORDS = [
    OpRecord(
        "quantile",
        quantile_samples,
        _quantile(np.quantile),
        dtypes=_WIDE,
        errors=_errors,
        atol=_PLACES,
    ),
    OpRecord(
        "nanquantile",
        quantile_samples,
        _quantile(np.nanquantile),
        dtypes=_WIDE,
        errors=_errors,
        atol=_PLACES,
    ),
]
