"""Records of reductions of segments."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import FLOATS, DType, bfloat16, float16, float32, int32

from ...records import ErrorSample, OpRecord, Sample
from .indexing import positions

_WAYS = ("sum", "mean", "max", "min", "prod")
_EMPTY = {"sum": 0.0, "mean": math.nan, "max": -math.inf, "min": math.inf, "prod": 1.0}


def _segments(make: Any, dtype: DType) -> Iterator[Sample]:
    # A segment without elements is infinite or nan, of which no differences can be taken.
    for way in _WAYS:
        lengths = positions(make, [2, 0, 3])
        yield Sample(make(5), way, lengths=positions(make, [2, 1, 2]))
        yield Sample(make(5, 2), way, lengths=lengths.to(int32), initial=0.5)
        yield Sample(make(2, 3, 2), way, lengths=positions(make, [[1, 2], [2, 1]]), axis=1)
        yield Sample(make(6), way, offsets=positions(make, [1, 3, 4]), initial=2)
        yield Sample(make(2, 4), way, offsets=positions(make, [[0, 1, 4], [0, 3, 4]]), axis=-1)
        yield Sample(make(5), way, lengths=positions(make, [2, 1]), unsafe=True)
    yield Sample(make(0, 3), "sum", lengths=positions(make, [0, 0]))
    yield Sample(make(0), "max", lengths=positions(make, []))


def _combined(part: Any, way: str, initial: float | None) -> Any:
    """Return the reduction of the first dimension of what is in one segment."""
    if not len(part):
        return np.full(part.shape[1:], _EMPTY[way] if initial is None else initial)
    if way == "mean":
        return (part.sum(0) + (initial or 0)) / len(part)
    function = getattr(np, {"max": "maximum", "min": "minimum"}.get(way, "add"))
    if way == "prod":
        function = np.multiply
    found = function.reduce(part, 0)
    return found if initial is None else function(found, initial)


def _reduced(
    data: Any,
    reduce: str,
    *,
    lengths: Any = None,
    offsets: Any = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Any:
    axis %= data.ndim
    if offsets is None:
        offsets = np.concatenate(
            [np.zeros((*lengths.shape[:-1], 1), int), np.cumsum(lengths, -1)], -1
        )
    count = offsets.shape[-1] - 1
    result = np.empty((*data.shape[:axis], count, *data.shape[axis + 1 :]), data.dtype)
    for row in np.ndindex(*data.shape[:axis]):
        for i in range(count):
            part = data[row][int(offsets[row][i]) : int(offsets[row][i + 1])]
            result[(*row, i)] = _combined(part, reduce, initial)
    return result


def _errors(make: Any) -> Iterator[ErrorSample]:
    two = positions(make, [2, 1])
    yield ErrorSample(Sample(make(3), "median", lengths=two), RuntimeError, "must be one of")
    yield ErrorSample(Sample(make(4), "sum", lengths=two), RuntimeError, "sum to")
    yield ErrorSample(Sample(make(1), "sum", lengths=two - 2), RuntimeError, "negative")
    yield ErrorSample(Sample(make(3), "sum"), RuntimeError, "Either lengths or offsets")
    yield ErrorSample(Sample(make(3, 3), "sum", lengths=two, axis=1), RuntimeError, "last dim")
    yield ErrorSample(Sample(make(3), "sum", lengths=two, axis=1), IndexError, "out of range")
    yield ErrorSample(
        Sample(make(3), "sum", lengths=two.to(float32)), NotImplementedError, "int32 or int64"
    )
    yield ErrorSample(Sample(make(3), "sum", indices=two), RuntimeError, "indices")
    yield ErrorSample(Sample(make(3), "sum", offsets=two), RuntimeError, "must not decrease")


_ROUNDED = {bfloat16.name: 2e-2, float16.name: 4e-3}

RECORDS = [
    OpRecord(
        "segment_reduce",
        _segments,
        _reduced,
        dtypes=FLOATS,
        errors=_errors,
        rtol=_ROUNDED,
        atol=_ROUNDED,
    )
]
