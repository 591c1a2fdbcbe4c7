"""Records of pooling."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.dtypes import FLOATS, DType, int64

from ..records import OpRecord, Sample
from ._networks import ORDER, SUMS

# --- average pooling ------------------------------------------------------------------------------
_GRADIENT_POOLINGS = (
    ((7,), (3,), (2,), (1,), False),
    ((8,), (3,), (2,), (0,), True),
    ((9,), (2,), (4,), (1,), False),
    ((5, 6), (2, 3), (2, 1), (1, 0), True),
    ((4, 3, 4), (2, 2, 2), (2, 1, 2), (0, 0, 1), False),
)


def _counts(size: Any, kernel: Any, stride: Any, padding: Any, ceil_mode: bool) -> Any:
    counts = []
    for s, k, st, p in zip(size, kernel, stride, padding, strict=True):
        span = s + 2 * p - k
        count = (-(-span // st) if ceil_mode else span // st) + 1
        counts.append(count - (ceil_mode and (count - 1) * st >= s + p))
    return tuple(counts)


def _pool_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for size, kernel, stride, padding, ceil_mode in _GRADIENT_POOLINGS:
        where = _counts(size, kernel, stride, padding, ceil_mode)
        for include, divisor in ((True, None), (False, None), (True, 3)):
            g = make(2, 2, *where)
            yield Sample(g, size, kernel, stride, padding, ceil_mode, include, divisor)
    yield Sample(make(0, 2, 2), (4,), (2,), (2,), (0,), False, True, None)


def _pool(
    g: Any, size: Any, kernel: Any, stride: Any, padding: Any, _: bool, include: bool, divisor: Any
) -> Any:
    result = np.zeros((*g.shape[:2], *size), g.dtype)
    for window in np.ndindex(*g.shape[2:]):
        starts = [w * s - p for w, s, p in zip(window, stride, padding, strict=True)]
        ends = [start + k for start, k in zip(starts, kernel, strict=True)]
        inside = [
            slice(max(a, 0), max(min(b, n), 0)) for a, b, n in zip(starts, ends, size, strict=True)
        ]
        whole = math.prod(
            min(b, n + p) - a for a, b, n, p in zip(starts, ends, size, padding, strict=True)
        )
        count = whole if include else math.prod(part.stop - part.start for part in inside)
        share = g[:, :, *window] / (divisor if divisor is not None else count)
        result[:, :, *inside] += share.reshape(*share.shape, *[1] * len(size))
    return result


# Each: size, then kernel, stride, padding and dilation, and whether a window may hang over the end.
_POOLINGS: list[tuple[Any, ...]] = [
    ((6,), (2,), (2,), (0,), (1,), False),
    ((5, 6), (3, 2), (2, 2), (1, 0), (1, 2), True),
    ((4, 5), (2, 2), (1, 1), (0, 1), (1, 1), False),
    ((3, 3, 4), (2, 2, 2), (1, 1, 2), (0, 0, 0), (1, 1, 1), False),
]


def _max_pool_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for size, *options in _POOLINGS:
        yield Sample(make(2, 2, *size), *options)
    yield Sample(make(0, 2, 4), (2,), (2,), (0,), (1,), False)


def _pool_count(n: int, k: int, s: int, p: int, d: int, ceil_mode: bool) -> int:
    span = (n + 2 * p - d * (k - 1) - 1) / s
    count = (math.ceil(span) if ceil_mode else math.floor(span)) + 1
    return count - 1 if ceil_mode and (count - 1) * s >= n + p else count


def _each_window(
    shape: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> Iterator[tuple[Any, Any]]:
    """Yield each window, and the places in it that are inside the input, in order."""
    counts = [
        _pool_count(*each, ceil_mode)
        for each in zip(shape, kernel, stride, padding, dilation, strict=True)
    ]
    for window in itertools.product(*map(range, counts)):
        along = [
            [i for i in (w * s - p + d * j for j in range(k)) if 0 <= i < n]
            for n, k, s, p, d, w in zip(
                shape, kernel, stride, padding, dilation, window, strict=True
            )
        ]
        yield window, list(itertools.product(*along))


def _max_pool(a: Any, *options: Any) -> Any:
    size = a.shape[2:]
    windows = list(_each_window(size, *options))
    counts = [max(w[d] for w, _ in windows) + 1 for d in range(len(size))]
    values = np.empty((*a.shape[:2], *counts), a.dtype)
    indices = np.empty(values.shape, np.int64)
    for lead in np.ndindex(*a.shape[:2]):
        for window, places in windows:
            best = places[0]
            for place in places[1:]:
                if a[lead + place] > a[lead + best]:
                    best = place
            values[lead + window] = a[lead + best]
            indices[lead + window] = np.ravel_multi_index(best, size)
    return values, indices


def _max_pool_gradient_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 1, 3), make(2, 1, 3, dtype=int64, low=0, high=5), (2, 1, 6))
    yield Sample(make(1, 2, 2, 2), make(1, 2, 2, 2, dtype=int64, low=0, high=8), (1, 2, 3, 3))
    yield Sample(make(0, 1, 3), make(0, 1, 3, dtype=int64), (0, 1, 6))


def _max_pool_gradient(g: Any, indices: Any, shape: Any) -> Any:
    result = np.zeros((*shape[:2], math.prod(shape[2:])), g.dtype)
    for lead in np.ndindex(*shape[:2]):
        for value, index in zip(g[lead].reshape(-1), indices[lead].reshape(-1), strict=True):
            result[lead][index] += value
    return result.reshape(shape)


def _avg_pool_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for size, kernel, stride, padding, _, ceil_mode in _POOLINGS:
        for include, divisor in ((True, None), (False, None), (True, 3)):
            yield Sample(make(2, 2, *size), kernel, stride, padding, ceil_mode, include, divisor)
    yield Sample(make(0, 2, 4), (2,), (2,), (0,), False, True, None)


def _avg_pool(
    a: Any, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, include: bool, divisor: Any
) -> Any:
    size = a.shape[2:]
    ones = (1,) * len(size)
    windows = list(_each_window(size, kernel, stride, padding, ones, ceil_mode))
    counts = [max(w[d] for w, _ in windows) + 1 for d in range(len(size))]
    result = np.empty((*a.shape[:2], *counts), a.dtype)
    for window, places in windows:
        # With the padding, but not beyond it.
        whole = math.prod(
            min(w * s - p + k, n + p) - (w * s - p)
            for w, s, p, k, n in zip(window, stride, padding, kernel, size, strict=True)
        )
        by = divisor if divisor is not None else whole if include else len(places)
        total = sum(a[(slice(None), slice(None), *place)] for place in places)
        result[(slice(None), slice(None), *window)] = total / by
    return result


def _of_ones(mean: Any, g: Any, shape: Any, *options: Any) -> Any:
    """Return the gradient of a mean, which is linear: from the means of single ones."""
    result = np.zeros(shape, g.dtype)
    for place in np.ndindex(*shape[2:]):
        one = np.zeros((1, 1, *shape[2:]), g.dtype)
        one[(0, 0, *place)] = 1
        seen = g * mean(one, *options)
        result[(slice(None), slice(None), *place)] = seen.sum(tuple(range(2, g.ndim)))
    return result


def _adaptive_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for shape, size in (
        ((2, 2, 7), (3,)),
        ((1, 3, 5, 6), (2, 4)),
        ((1, 2, 3, 4, 5), (2, 4, 3)),
        ((2, 1, 3, 2), (5, 0)),
        ((0, 2, 4), (3,)),
    ):
        yield Sample(make(*shape), size)


def _adaptive(a: Any, size: Any) -> Any:
    result = np.empty((*a.shape[:2], *size), a.dtype)
    for at in np.ndindex(*size):
        box = [
            slice(i * n // w, math.ceil((i + 1) * n / w))
            for i, n, w in zip(at, a.shape[2:], size, strict=True)
        ]
        part = a[(slice(None), slice(None), *box)]
        result[(slice(None), slice(None), *at)] = part.mean(tuple(range(2, a.ndim)))
    return result


def _adaptive_gradient_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for sample in _adaptive_samples(make, dtype):
        shape = tuple(sample.args[0].shape)
        yield Sample(make(*shape[:2], *sample.args[1]), shape)


def _record(op: str, samples: Any, reference: Any) -> OpRecord:
    return OpRecord(op, samples, reference, dtypes=FLOATS, atol=SUMS, rtol=ORDER, torch="")


RECORDS = [
    _record("avg_pool_gradient", _pool_samples, _pool),
    _record("max_pool", _max_pool_samples, _max_pool),
    _record("max_pool_gradient", _max_pool_gradient_samples, _max_pool_gradient),
    _record("avg_pool", _avg_pool_samples, _avg_pool),
    _record("adaptive_avg_pool", _adaptive_samples, _adaptive),
    _record(
        "adaptive_avg_pool_gradient",
        _adaptive_gradient_samples,
        lambda g, shape: _of_ones(_adaptive, g, shape, g.shape[2:]),
    ),
]
