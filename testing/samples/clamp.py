"""Records of bounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import COMPLEXES, DType

from ..records import ErrorSample, OpRecord, Sample
from ._steps import stepwise
from .arithmetic import ORDERED, REAL, binary, refuses


def _within_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(6), make(6), 1, 5)
    yield Sample(make(3, 4), make(3, 4), make(3, 4, low=0, high=2), 3)
    yield Sample(make(0), make(0), 1, 2)


# --- selection --------------------------------------------------------------------------------
def _bounds_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(6), 1, 5)
    yield Sample(make(6), 2)
    yield Sample(make(6), max=3)
    yield Sample(make(), min=1, max=2)
    yield Sample(make(3, 4), make(4, low=0, high=2), make(3, 1, low=3, high=6))
    yield Sample(make(3, 4), make(low=0, high=2), 3)
    yield Sample(make(3, 4), max=make(4))
    yield Sample(make(4), 5, 1)
    yield Sample(make(0), 1)
    yield Sample(make(0), 1, 2)


def _clamp(a: Any, min: Any = None, max: Any = None) -> Any:
    a = a if min is None else np.maximum(a, min)
    return a if max is None else np.minimum(a, max)


def _clamp_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(3)), RuntimeError, "At least one")
    yield from refuses(COMPLEXES[1], arity=2)(make)


RECORDS = [
    stepwise(
        "clamp_backward",
        _within_samples,
        lambda g, a, low, high: np.where((a >= low) & (a <= high), g, 0),
    ),
    OpRecord("clamp", _bounds_samples, _clamp, dtypes=REAL, errors=_clamp_errors),
    OpRecord("clamp_max", binary(numbers=(2,)), np.minimum, dtypes=REAL),
    OpRecord("clamp_min", binary(numbers=(2,)), np.maximum, dtypes=REAL),
    OpRecord("fmax", binary(), np.fmax, dtypes=ORDERED),
    OpRecord("fmin", binary(), np.fmin, dtypes=ORDERED),
    OpRecord(
        "maximum", binary(), np.maximum, dtypes=ORDERED, errors=refuses(COMPLEXES[1], arity=2)
    ),
    OpRecord(
        "minimum", binary(), np.minimum, dtypes=ORDERED, errors=refuses(COMPLEXES[1], arity=2)
    ),
]
