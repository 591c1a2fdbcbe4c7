"""Records of reading and writing at positions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import DType, bool_, int32, int64
from tensorplug.core.tensor.creation import tensor

from ...records import ErrorSample, OpRecord, Sample
from ..shape import calls, wrong

_ALL = slice(None)


def positions(make: Any, values: Any, dtype: DType = int64) -> Any:
    """Return index tensor of the given values on the device under test."""
    return tensor(values, dtype=dtype, device=make.device)


def _key(indices: Any) -> Any:
    return tuple([_ALL if item is None else item for item in indices])


def _place(a: Any, shape: Any, key: Any) -> Any:
    result = np.zeros(shape, a.dtype)
    result[key] = a
    return result


def _narrow(a: Any, dim: int, start: int, length: int) -> Any:
    start = int(start)
    return np.take(a, range(start + (a.shape[dim] if start < 0 else 0), 10**6)[:length], dim)


def _index_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    at = positions(make, [0, -1, 1, 1])
    yield Sample(make(3, 4), [at])
    yield Sample(make(3, 4), [None, at])
    yield Sample(make(3, 4), [at, at])
    yield Sample(make(3, 2, 4), [at, None, at])
    yield Sample(make(2, 3, 4), [None, at, positions(make, [[0], [3]])])
    yield Sample(make(3, 4), [positions(make, [[0, 1], [2, 2]], int32)])
    yield Sample(make(3, 4), [positions(make, [])])
    yield Sample(make(0, 4), [None, at])
    yield Sample(make(3, 4), [positions(make, [True, False, True], bool_)])


def _index_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(3), [positions(make, [3])]), IndexError, "out of bounds")
    yield ErrorSample(Sample(make(3), [make(3)]), IndexError, "must be long, int, byte or bool")
    yield ErrorSample(Sample(make(3), [positions(make, [0])] * 2), IndexError, "too many indices")
    mask = positions(make, [True, False], bool_)
    yield ErrorSample(Sample(make(3), [mask]), IndexError, "shape of the mask")


def _put_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    apart = positions(make, [0, -1])
    yield Sample(make(3, 4), [apart], make(2, 4))
    yield Sample(make(3, 4), [apart], make(4))
    yield Sample(make(3, 4), [None, apart], make(()))
    yield Sample(make(3, 4), [apart, apart], make(2))
    yield Sample(make(2, 3, 4), [apart, None, apart], make(2, 3))
    yield Sample(make(3, 4), [positions(make, [])], make(0, 4))
    if dtype is not bool_:  # the sum of bools is no concern of ours
        together = positions(make, [1, 1, 0])
        yield Sample(make(3, 4), [together], make(3, 4), True)
        yield Sample(make(3, 4), [None, together], make(3, 3), accumulate=True)
        yield Sample(make(3, 4), [together, together], make(3), accumulate=True)


def _put(a: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    result = a.copy()
    if accumulate:
        np.add.at(result, _key(indices), values)
    else:
        result[_key(indices)] = values
    return result


def _put_errors(make: Any) -> Iterator[ErrorSample]:
    at = positions(make, [0, 1])
    yield ErrorSample(Sample(make(3), [at], make(3)), RuntimeError, "cannot be broadcast")
    other = make(2, dtype=int32)
    yield ErrorSample(Sample(make(3), [at], other), RuntimeError, "dtypes match")
    yield ErrorSample(
        Sample(make(3), [positions(make, [-4])], make(1)), IndexError, "out of bounds"
    )


_WIDE = {"bfloat16": 2e-2, "float16": 2e-3}  # sums of several numbers, each rounded


RECORDS = [
    OpRecord(
        "basic_index",
        calls(
            ((3, 4), (1,)),
            ((3, 4), (slice(0, 3, 2), None, 1)),
            ((3,), (2,)),
            ((0, 2), (_ALL, 1)),
            ((), (None,)),
        ),
        lambda a, key: a[key],
        torch="",
    ),
    OpRecord(
        "place",
        calls(
            ((4,), (3, 4), (1,)),
            ((0, 4), (3, 4), (slice(0, 0),)),
            ((2, 1), (3, 4), (slice(0, 3, 2), slice(1, 2))),
        ),
        _place,
        torch="",
    ),
    OpRecord(
        "select",
        calls(((3, 4), 0, 1), ((3, 4), -1, -1), ((2,), 0, 0), ((0, 3), 1, 2)),
        lambda a, dim, n: np.take(a, n, dim),
        errors=wrong((IndexError, "out of range", (3,), 0, 3), (IndexError, "0-dim", (), 0, 0)),
    ),
    OpRecord(
        "narrow",
        calls(((3, 4), 0, 1, 2), ((3, 4), -1, -2, 2), ((2,), 0, 2, 0)),
        _narrow,
        errors=wrong(
            (RuntimeError, "exceeds dimension size", (3,), 0, 1, 3),
            (RuntimeError, "non-negative", (3,), 0, 1, -1),
            (IndexError, "start out of range", (3,), 0, 4, 0),
        ),
    ),
    OpRecord(
        "index",
        _index_samples,
        lambda a, indices: a[_key(indices)],
        errors=_index_errors,
        torch="",
        skips={"meta": "where a mask is True is data"},
    ),
    OpRecord("index_put", _put_samples, _put, errors=_put_errors, torch="", atol=_WIDE, rtol=_WIDE),
]
