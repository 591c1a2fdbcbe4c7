"""Records of reductions."""

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
    complex128,
    float32,
    float64,
)
from tensorplug.core.tensor.creation import tensor

from ..records import ErrorSample, OpRecord, Sample

INEXACT = (*FLOATS, *COMPLEXES)
ORDERED = tuple(dtype for dtype in ALL_DTYPES if not dtype.is_complex)
NUMBERED = (*INTEGRAL, *FLOATS)  # ordered, and no truth values

# Sums of a few numbers up to 9 cancel: their error is one of the terms, not of the result. Half
# precision
# is summed in single and rounded once; an intermediate rounding remains where an op is composed of
# others.
CANCELLATION = {"float16": 2e-2, "bfloat16": 2e-1, "float32": 2e-5, "complex64": 2e-5}


def reduction_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    """Yield reductions over all, one, several and no elements."""
    yield Sample(make(3, 4))
    yield Sample(make())
    yield Sample(make(0, 3))
    yield Sample(make(2, 3, 4), 1)
    yield Sample(make(2, 3, 4), (0, -1), keepdim=True)
    yield Sample(make(0, 3), 0)
    yield Sample(make(2, 3), dim=[])


def nonempty_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    """Yield reductions that have no identity."""
    yield Sample(make(3, 4))
    yield Sample(make())
    yield Sample(make(), 0)
    yield Sample(make(2, 3, 4), 1)
    yield Sample(make(2, 3, 4), (0, -1), keepdim=True)
    yield Sample(make(2, 0, 3), (0, 2))
    if dtype is float32:
        yield Sample(with_nan(make(3, 4)), 1, label="nan")


def one_dim_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    """Yield reductions over all elements or one dimension, not empty."""
    yield Sample(make(3, 4))
    yield Sample(make())
    yield Sample(make(), 0)
    yield Sample(make(2, 3, 4), 1)
    yield Sample(make(2, 3, 4), -1, keepdim=True)
    yield Sample(make(2, 0), 0)
    if dtype is float32:
        yield Sample(with_nan(make(3, 4)), 1, label="nan")


def with_nan(tensor: Any) -> Any:
    """Return `tensor` with NaN in place of its larger elements."""
    return tensor.masked_fill(tensor > 3, float("nan"))


def _axis(dim: Any) -> Any:
    if dim is None or isinstance(dim, int):
        return dim
    return tuple(dim) or None


def _sum(a: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    if dtype is not None:
        a = a.astype(dtype.name)
    return np.sum(a, axis=_axis(dim), keepdims=keepdim)


def _sum_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield from reduction_samples(make, dtype)
    yield Sample(make(3, 4), 1, dtype=complex128 if dtype.is_complex else float64)


def _sum_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, 3), 2), IndexError, "Dimension out of range")
    yield ErrorSample(Sample(make(2, 3), (0, 0)), RuntimeError, "multiple times")
    yield ErrorSample(Sample(make(2, 3), 1, 2), TypeError, "must be bool")


def _nansum(a: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    return np.nansum(a, axis=_axis(dim), keepdims=keepdim)


def _nan_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield from reduction_samples(make, dtype)
    if dtype.is_floating_point:
        yield Sample(with_nan(make(3, 4)), 0, label="nan")


def _nanmean_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(3, 4))
    yield Sample(make())
    yield Sample(make(2, 3, 4), (0, -1), keepdim=True)
    yield Sample(make(0, 3), 1)
    yield Sample(with_nan(make(3, 4)), 0, label="nan")


def _mean(a: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    axis = _axis(dim)
    total = np.sum(a, axis=axis, keepdims=keepdim)
    return total / np.asarray(a.size / max(total.size, 1) if a.size else 0.0)


def _mean_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2, dtype=bool_)), RuntimeError, "could not infer output dtype")
    yield ErrorSample(Sample(make(2, 3), 2), IndexError, "Dimension out of range")


def _nanmean(a: Any, dim: Any = None, keepdim: bool = False) -> Any:
    count = np.sum(~np.isnan(a), axis=_axis(dim), keepdims=keepdim)
    return np.nansum(a, axis=_axis(dim), keepdims=keepdim) / count


def _prod_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 3, low=-2, high=2))
    yield Sample(make())
    yield Sample(make(0, 3))
    yield Sample(make(2, 3, 2, low=-2, high=2), 1)
    yield Sample(make(2, 3, low=-2, high=2), -1, keepdim=True)
    yield Sample(make(0, 3), 0)
    yield Sample(zeroed(make, 1, 0, 1), label="one zero")
    yield Sample(zeroed(make, 0, 1, 0), 0, label="two zeros")


def zeroed(make: Any, *keep: int) -> Any:
    """Return a vector with zeros at some places, by which a gradient must not divide."""
    vector = make(len(keep), low=1, high=2)
    return vector * tensor(keep, dtype=bool_, device=vector.device)


def _prod(a: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    return np.prod(a, axis=dim, keepdims=keepdim)


def _truth(function: Any) -> Any:
    def reference(a: Any, dim: Any = None, keepdim: bool = False) -> Any:
        axis = tuple(dim) if isinstance(dim, (tuple, list)) else dim
        found = function(a, axis=axis, keepdims=keepdim)
        return found.astype(np.uint8) if a.dtype == np.uint8 else found

    return reference


def _truth_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield from reduction_samples(make, dtype)
    yield Sample(make(2, 3) * 0, 1, label="zeros")


def _count(a: Any, dim: Any = None) -> Any:
    return np.count_nonzero(a, axis=_axis(dim))


def _count_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(3, 4))
    yield Sample(make())
    yield Sample(make(0, 3))
    yield Sample(make(2, 3, 4), 1)
    yield Sample(make(2, 3, 4), (0, -1))


def _extreme(function: Any) -> Any:
    def reference(a: Any, dim: Any = (), keepdim: bool = False) -> Any:
        return function(a, axis=_axis(dim) if a.ndim else None, keepdims=keepdim)

    return reference


def _extreme_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(0, 3), 0), IndexError, "non-zero size")
    yield ErrorSample(Sample(make(0, 3)), RuntimeError, "dim to be specified")
    yield ErrorSample(Sample(make(2, dtype=complex128)), NotImplementedError, "no order")


def _aminmax_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(3, 4))
    yield Sample(make())
    yield Sample(make(3, 4), keepdim=True)
    yield Sample(make(3, 4), dim=1)
    yield Sample(make(3, 4), dim=-2, keepdim=True)
    yield Sample(make(0, 4), dim=1)
    yield Sample(make(), dim=0)


def _aminmax(a: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return np.min(a, axis=dim, keepdims=keepdim), np.max(a, axis=dim, keepdims=keepdim)


def _aminmax_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(0)), RuntimeError, "no identity")
    yield ErrorSample(Sample(make(0, 2), dim=0), IndexError, "non-zero size")


def _position(function: Any) -> Any:
    def reference(a: Any, dim: Any = None, keepdim: bool = False) -> Any:
        return function(a, axis=dim if a.ndim else None, keepdims=keepdim)

    return reference


def _position_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(0)), IndexError, "dim to be specified")
    yield ErrorSample(Sample(make(0, 2), 0), IndexError, "non-zero size")
    yield ErrorSample(Sample(make(2, dtype=bool_)), RuntimeError, "bool")
    yield ErrorSample(Sample(make(2, dtype=complex128)), RuntimeError, "complex")


def _max_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield from one_dim_samples(make, dtype)
    yield Sample(make(3, 4), 0, True)
    yield Sample(make(0, 3), 1)
    yield Sample(make(3, 4), make(4))


def _largest(function: Any, position: Any, elementwise: Any) -> Any:
    def reference(a: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if isinstance(dim, np.ndarray):
            return elementwise(a, dim)
        if dim is None:
            return function(a)
        if not a.ndim:
            return a, np.zeros((), np.int64)
        return function(a, axis=dim, keepdims=keepdim), position(a, axis=dim, keepdims=keepdim)

    return reference


def _max_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(0)), RuntimeError, "dim to be specified")
    yield ErrorSample(Sample(make(0, 2), 0), IndexError, "non-zero size")
    yield ErrorSample(Sample(make(2), keepdim=True), TypeError, "needs a dim")


def _hash_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield from nonempty_samples(make, dtype)
    yield Sample(make(7), label="odd")


def _hash(a: Any, dim: Any = (), *, keepdim: bool = False) -> Any:
    kind = np.int64 if a.dtype.kind in "iu" else np.float64
    words = np.ascontiguousarray(a.astype(kind)).reshape(a.shape).view(np.uint64)
    axis: Any = None if dim == () else _axis(dim)
    combine: Any = np.bitwise_xor.reduce
    return combine(words, axis=axis, keepdims=keepdim)


def _hash_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(0)), RuntimeError, "dim to be specified")
    yield ErrorSample(Sample(make(0, 2), 0), IndexError, "non-zero size")
    yield ErrorSample(Sample(make(2), mode=1), RuntimeError, "mode: 1")
    yield ErrorSample(Sample(make(2, dtype=complex128)), NotImplementedError, "view_as_real")


RECORDS = [
    OpRecord("sum", _sum_samples, _sum, errors=_sum_errors, atol=CANCELLATION),
    OpRecord("nansum", _nan_samples, _nansum, dtypes=ORDERED, atol=CANCELLATION),
    OpRecord(
        "mean", reduction_samples, _mean, dtypes=INEXACT, errors=_mean_errors, atol=CANCELLATION
    ),
    OpRecord("nanmean", _nanmean_samples, _nanmean, dtypes=FLOATS, atol=CANCELLATION),
    OpRecord("prod", _prod_samples, _prod, atol=CANCELLATION),
    OpRecord("any", _truth_samples, _truth(np.any), gradient=False),
    OpRecord("all", _truth_samples, _truth(np.all), gradient=False),
    OpRecord("count_nonzero", _count_samples, _count, gradient=False),
    OpRecord(
        "hash_tensor", _hash_samples, _hash, dtypes=NUMBERED, gradient=False, errors=_hash_errors
    ),
    OpRecord("amax", nonempty_samples, _extreme(np.max), dtypes=ORDERED, errors=_extreme_errors),
    OpRecord("amin", nonempty_samples, _extreme(np.min), dtypes=ORDERED, errors=_extreme_errors),
    OpRecord("aminmax", _aminmax_samples, _aminmax, dtypes=ORDERED, errors=_aminmax_errors),
    OpRecord(
        "argmax",
        one_dim_samples,
        _position(np.argmax),
        dtypes=NUMBERED,
        gradient=False,
        errors=_position_errors,
    ),
    OpRecord(
        "argmin",
        one_dim_samples,
        _position(np.argmin),
        dtypes=NUMBERED,
        gradient=False,
        errors=_position_errors,
    ),
    OpRecord(
        "max",
        _max_samples,
        _largest(np.max, np.argmax, np.maximum),
        dtypes=ORDERED,
        errors=_max_errors,
    ),
    OpRecord(
        "min",
        _max_samples,
        _largest(np.min, np.argmin, np.minimum),
        dtypes=ORDERED,
        errors=_max_errors,
    ),
]
