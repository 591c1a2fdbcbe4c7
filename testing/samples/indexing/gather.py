"""Records of gathering and scattering."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import (
    ALL_DTYPES,
    COMPLEXES,
    FLOATS,
    INTEGRAL,
    DType,
    bool_,
    int32,
    int64,
)

from ...records import ErrorSample, OpRecord, Sample
from .indexing import positions

_NUMBERS = tuple([dtype for dtype in ALL_DTYPES if dtype is not bool_])
_ROUNDED = {"bfloat16": 2e-2, "float16": 4e-3}  # several numbers combined, each rounded


def _places(index: Any, dim: int) -> list[tuple[Any, tuple[int, ...]]]:
    """Return (place in the index, place it tells) for each element of an index."""
    found = []
    for place in np.ndindex(index.shape):
        target = list(place)
        if target:
            target[dim] = int(index[place])
        found.append((place, tuple(target)))
    return found


def _gather(a: Any, dim: int, index: Any) -> Any:
    a = a if a.ndim else a.reshape(1)
    wide = index if index.ndim else index.reshape(1)
    result = np.empty(wide.shape, a.dtype)
    for place, target in _places(wide, dim):
        result[place] = a[target]
    return result.reshape(index.shape)


def _gather_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(3, 4), 1, make(3, 2, dtype=int64, low=0, high=3))
    yield Sample(make(3, 4), 0, make(5, 2, dtype=int64, low=0, high=2))
    yield Sample(make(2, 3, 4), -2, make(2, 1, 4, dtype=int64, low=0, high=2))
    yield Sample(make(4), 0, positions(make, 3))
    yield Sample(make(), 0, positions(make, [0, 0]))
    yield Sample(make(3, 4), 1, make(0, 2, dtype=int64))
    yield Sample(make(3), 0, make(5, dtype=int32, low=0, high=2))


def _gather_errors(make: Any) -> Iterator[ErrorSample]:
    for wrong in (3, -1):
        yield ErrorSample(
            Sample(make(3), 0, positions(make, [wrong])), RuntimeError, "out of bounds"
        )
    yield ErrorSample(
        Sample(make(3), 0, positions(make, [[1]])), RuntimeError, "same number of dimensions"
    )
    yield ErrorSample(Sample(make(2, 3), 1, positions(make, [[0]] * 3)), RuntimeError, "no larger")
    yield ErrorSample(Sample(make(3), 0, make(3)), RuntimeError, "int32/int64")


def _scatter_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    apart = positions(make, [[0, 1, 2, 0], [2, 0, 1, 1]])
    yield Sample(make(3, 4), 0, apart, make(2, 4))
    yield Sample(make(3, 5), 0, apart, make(3, 4), label="src larger than index")
    yield Sample(make(2, 3), 1, positions(make, [[2, 0]]), make(1, 2))
    yield Sample(make(4), 0, positions(make, [3, 0]), True if dtype is bool_ else 1)
    yield Sample(make(), 0, positions(make, 0), make())
    yield Sample(make(3), 0, positions(make, []), make(0))


def _scatter(a: Any, dim: int, index: Any, src: Any) -> Any:
    result = (a if a.ndim else a.reshape(1)).copy()
    index = index if index.ndim else index.reshape(1)
    values = np.broadcast_to(src, index.shape) if not np.ndim(src) else src
    for place, target in _places(index, dim):
        result[target] = values[place]
    return result.reshape(a.shape)


def _scatter_errors(make: Any) -> Iterator[ErrorSample]:
    at = positions(make, [0, 1])
    yield ErrorSample(Sample(make(3), 0, at, make(1)), RuntimeError, "no larger size than src")
    yield ErrorSample(
        Sample(make(3), 0, at, make(2, dtype=int32)), RuntimeError, "equal to src.dtype"
    )
    yield ErrorSample(
        Sample(make(3), 0, positions(make, [0, 3]), make(2)), RuntimeError, "out of bounds"
    )


def _add_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(3, 4), 0, make(5, 4, dtype=int64, low=0, high=2), make(5, 4))
    yield Sample(make(3, 4), -1, make(2, 3, dtype=int64, low=0, high=3), make(3, 4))
    yield Sample(make(3, 4), 1, positions(make, [[0, 0, 2], [3, 1, 1]]), make(2, 3))
    yield Sample(make(3), 0, positions(make, []), make(0))
    yield Sample(make(), 0, positions(make, [0, 0]), make(2))


def _reduce_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for way in ("sum", "prod", "mean", *(() if dtype.is_complex else ("amax", "amin"))):
        for include_self in (True, False):
            index = positions(make, [[0, 0, 2], [1, 1, 1]])
            low, high = (1, 3) if dtype in INTEGRAL else (None, None)
            yield Sample(
                make(3, 3, low=low, high=high),
                0,
                index,
                make(2, 3, low=low, high=high),
                way,
                include_self=include_self,
            )
    yield Sample(make(3), 0, positions(make, []), make(0), "sum")
    yield Sample(make(), 0, positions(make, [0, 0]), make(2), "sum")


def _reduce(a: Any, dim: int, index: Any, src: Any, way: str, include_self: bool = True) -> Any:
    result = (a if a.ndim else a.reshape(1)).copy()
    met: dict[Any, list[Any]] = {}
    for place, target in _places(index, dim):
        met.setdefault(target, [result[target]] if include_self else []).append(src[place])
    for target, values in met.items():
        combined = getattr(np, way)(np.array(values))
        if way == "mean" and result.dtype.kind in "iu":
            combined = np.sum(np.array(values)) // len(values)
        result[target] = combined
    return result.reshape(a.shape)


def _reduce_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(
        Sample(make(3), 0, positions(make, [0]), make(1), "median"), RuntimeError, "reduce argument"
    )


def _take_along_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(3, 4), make(3, 2, dtype=int64, low=0, high=3), 1)
    yield Sample(make(3, 4), make(1, 4, dtype=int64, low=0, high=2), 0)
    yield Sample(make(3, 4), make(5, dtype=int64, low=0, high=11))
    yield Sample(make(3, 4), make(0, 4, dtype=int64), 0)
    yield Sample(make(0), make(0, dtype=int64))


def _slices(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(3, 4), 0, positions(make, [2, 0, 2]))
    yield Sample(make(3, 4), -1, positions(make, [1], int32))
    yield Sample(make(3, 4), 1, positions(make, []))
    yield Sample(make(3), 0, positions(make, 1))
    yield Sample(make(2, 3, 4), 1, positions(make, [1, 1]))
    yield Sample(make(3, 0), 0, positions(make, [1]))
    yield Sample(make(), 0, positions(make, [0]))


def _index_select(a: Any, dim: int, index: Any) -> Any:
    if not a.ndim:
        return a
    return np.take(a, index.reshape(-1), dim)


def _slice_errors(make: Any) -> Iterator[ErrorSample]:
    for outside in (3, -1):
        yield ErrorSample(
            Sample(make(3), 0, positions(make, [outside])), IndexError, "out of bounds"
        )
    yield ErrorSample(Sample(make(3), 0, positions(make, [[0]])), IndexError, "a vector")
    yield ErrorSample(Sample(make(3), 0, make(1)), RuntimeError, "int32/int64")


def _at_dim(a: Any, dim: int, index: Any) -> Any:
    return (*[slice(None)] * (dim % a.ndim), index.reshape(-1)) if a.ndim else ()


def _add_slices(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(3, 4), 0, positions(make, [2, 0, 2]), make(3, 4))
    yield Sample(make(3, 4), 1, positions(make, [1, 1]), make(3, 2), alpha=2)
    yield Sample(make(3), 0, positions(make, 1), make(1))
    yield Sample(make(3, 4), 0, positions(make, []), make(0, 4))
    yield Sample(make(0, 4), 1, positions(make, [1]), make(0, 1))
    yield Sample(make(), 0, positions(make, [0]), make(1))


def _index_add(a: Any, dim: int, index: Any, source: Any, alpha: Any = 1) -> Any:
    result = a.copy()
    added = source * np.asarray(alpha, a.dtype)
    np.add.at(result, _at_dim(a, dim, index), added if a.ndim else added.sum(dtype=a.dtype))
    return result


def _add_errors(make: Any) -> Iterator[ErrorSample]:
    at = positions(make, [0, 1])
    yield ErrorSample(Sample(make(3), 0, at, make(3)), RuntimeError, "Number of indices")
    yield ErrorSample(Sample(make(3), 0, at - 1, make(2)), IndexError, "out of bounds")
    yield ErrorSample(
        Sample(make(3), 0, at, make(2, dtype=int32)), RuntimeError, "same scalar type"
    )


def _copy_slices(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(3, 4), 0, positions(make, [2, 0]), make(2, 4))
    yield Sample(make(3, 4), -1, positions(make, [1, 3]), make(3, 2))
    yield Sample(make(3), 0, positions(make, 1), make())
    yield Sample(make(3, 4), 0, positions(make, []), make(0, 4))
    yield Sample(make(0, 4), 1, positions(make, [1]), make(0, 1))
    yield Sample(make(), 0, positions(make, [0]), make())


def _index_copy(a: Any, dim: int, index: Any, source: Any) -> Any:
    result = a.copy()
    result[_at_dim(a, dim, index)] = source
    return result


def _copy_errors(make: Any) -> Iterator[ErrorSample]:
    at = positions(make, [0, 1])
    yield ErrorSample(Sample(make(3), 0, at, make()), IndexError, "should have one element")
    yield ErrorSample(Sample(make(3), 0, at - 1, make(2)), IndexError, "out of bounds")
    yield ErrorSample(Sample(make(3), 0, at, make(3)), IndexError, "Number of indices")


def _fill_slices(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(3, 4), 0, positions(make, [2, 0]), True if dtype is bool_ else 1)
    yield Sample(make(3, 4), 1, positions(make, [-1]), make().detach())
    yield Sample(make(3, 4), 0, positions(make, []), True if dtype is bool_ else 1)
    yield Sample(make(0, 4), 1, positions(make, [2]), make().detach())
    yield Sample(make(), 0, positions(make, [0]), make().detach())


def _reduce_slices(make: Any, dtype: DType) -> Iterator[Sample]:
    for way in ("mean", "prod") if dtype.is_complex else ("mean", "prod", "amax", "amin"):
        low, high = (1, 3) if dtype in INTEGRAL else (None, None)
        yield Sample(
            make(3, 2, low=low, high=high),
            0,
            positions(make, [2, 2]),
            make(2, 2, low=low, high=high),
            way,
            include_self=way != "mean",
        )
        yield Sample(make(3, 2), 0, positions(make, []), make(0, 2), way)
        yield Sample(make(3, 0), 0, positions(make, [1]), make(1, 0), way, include_self=False)


def _index_reduce(
    a: Any, dim: int, index: Any, src: Any, way: str, include_self: bool = True
) -> Any:
    wide = np.broadcast_to(index.reshape([-1 if d == dim else 1 for d in range(a.ndim)]), src.shape)
    return _reduce(a, dim, wide, src, way, include_self)


def _take_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(3, 4), positions(make, [[0, -1], [5, 5]]))
    yield Sample(make(3), positions(make, 1))
    yield Sample(make(3), positions(make, []))


def _put_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(3, 4), positions(make, [[0, -1]]), make(1, 2))
    if dtype is not bool_:
        yield Sample(make(3, 4), positions(make, [5, 5]), make(2), True)
    yield Sample(make(3), positions(make, []), make(0))
    yield Sample(make(0), positions(make, []), make(0))
    yield Sample(make(), positions(make, 0), make())


def _put(a: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    result = a.copy().reshape(-1)
    if accumulate:
        np.add.at(result, index.reshape(-1), source.reshape(-1))
    else:
        result[index.reshape(-1)] = source.reshape(-1)
    return result.reshape(a.shape)


RECORDS = [
    OpRecord("gather", _gather_samples, _gather, errors=_gather_errors),
    OpRecord("scatter", _scatter_samples, _scatter, errors=_scatter_errors),
    OpRecord(
        "scatter_add",
        _add_samples,
        lambda a, dim, index, src: _reduce(a, dim, index, src, "sum"),
        dtypes=_NUMBERS,
        errors=_scatter_errors,
        rtol=_ROUNDED,
        atol=_ROUNDED,
    ),
    OpRecord(
        "scatter_reduce",
        _reduce_samples,
        _reduce,
        dtypes=(*INTEGRAL, *FLOATS, *COMPLEXES),
        errors=_reduce_errors,
        rtol=_ROUNDED,
        atol=_ROUNDED,
    ),
    OpRecord(
        "take_along_dim",
        _take_along_samples,
        lambda a, index, dim=None: np.take_along_axis(
            a.reshape(-1) if dim is None else a, index, 0 if dim is None else dim
        ),
    ),
    OpRecord("index_select", _slices, _index_select, errors=_slice_errors),
    OpRecord(
        "index_add",
        _add_slices,
        _index_add,
        dtypes=_NUMBERS,
        errors=_add_errors,
        rtol=_ROUNDED,
        atol=_ROUNDED,
    ),
    OpRecord("index_copy", _copy_slices, _index_copy, errors=_copy_errors),
    OpRecord("index_fill", _fill_slices, _index_copy),
    OpRecord(
        "index_reduce",
        _reduce_slices,
        _index_reduce,
        dtypes=(*INTEGRAL, *FLOATS, *COMPLEXES),
        rtol=_ROUNDED,
        atol=_ROUNDED,
    ),
    OpRecord("take", _take_samples, lambda a, index: a.reshape(-1)[index]),
    OpRecord("put", _put_samples, _put),
]
