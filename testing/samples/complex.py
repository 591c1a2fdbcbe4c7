"""Records of complex numbers from their parts, and of their parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import COMPLEXES, DType, float32, float64, int64

from ..records import ErrorSample, OpRecord, Sample


def _parts(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 3), make(2, 3))
    yield Sample(make(), make())
    yield Sample(make(3), make(2, 1))
    yield Sample(make(0), make(0))


def _part_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2), make(2, dtype=float32)), RuntimeError, "scalar type")
    yield ErrorSample(Sample(make(2, dtype=int64), make(2)), RuntimeError, "Float or Double")
    yield ErrorSample(Sample(make(2), 1.0), TypeError, "must be Tensor")


def _complexes(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 3))
    yield Sample(make())
    yield Sample(make(0, 2))


def _imag_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, dtype=float64)), RuntimeError, "non-complex")


RECORDS = [
    OpRecord("complex", _parts, lambda a, b: a + 1j * b, (float32, float64), errors=_part_errors),
    OpRecord(
        "polar", _parts, lambda a, b: a * np.exp(1j * b), (float32, float64), errors=_part_errors
    ),
    OpRecord("real", _complexes, lambda a: a.real, (float32, float64, *COMPLEXES)),
    OpRecord("imag", _complexes, lambda a: a.imag, COMPLEXES, errors=_imag_errors),
]
