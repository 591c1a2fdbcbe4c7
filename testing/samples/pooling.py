"""Records of pooling."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import FLOATS, DType, int64
from tensorplug.core.ops import arange

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


def _max_pool_backward_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 1, 3), make(2, 1, 3, dtype=int64, low=0, high=5), (2, 1, 6))
    yield Sample(make(1, 2, 2, 2), make(1, 2, 2, 2, dtype=int64, low=0, high=8), (1, 2, 3, 3))
    yield Sample(make(0, 1, 3), make(0, 1, 3, dtype=int64), (0, 1, 6))


def _max_pool_backward(g: Any, indices: Any, shape: Any) -> Any:
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


# --- as users call them ---------------------------------------------------------------------------

_SIZE, _KERNEL = (5, 4, 3), (3, 2, 1)


def _named(name: str, samples: Any, reference: Any, **options: Any) -> OpRecord:
    """Return the record of a function of nn.functional."""
    torch = f"nn.functional.{name}"
    options = {"dtypes": FLOATS, "atol": SUMS, "rtol": ORDER, "torch": torch, **options}
    return OpRecord(name, samples, reference, **options)


def _each(value: Any, count: int) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple) else (value,) * count


def _call_samples(count: int, *options: dict[str, Any]) -> Any:
    def samples(make: Any, dtype: DType) -> Iterator[Sample]:
        size, kernel = _SIZE[:count], _KERNEL[:count]
        first: dict[str, Any] = {"stride": 2, "ceil_mode": True}
        for option in ({}, first, *options):
            yield Sample(make(2, 2, *size), kernel, **option)
        yield Sample(make(2, *size), 2)
        yield Sample(make(0, 2, *size), kernel)

    return samples


def _windows(kernel: Any, stride: Any, count: int) -> Any:
    kernel = _each(kernel, count)
    return kernel, kernel if stride is None else _each(stride, count)


def _max_pool_call(count: int, *, both: bool) -> Any:
    def reference(
        a: Any,
        kernel: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        kernel, stride = _windows(kernel, stride, count)
        options = (kernel, stride, _each(padding, count), _each(dilation, count), ceil_mode)
        results = _max_pool(a if a.ndim == count + 2 else a[None], *options)
        if a.ndim < count + 2:
            results = tuple(result[0] for result in results)
        return results if both or return_indices else results[0]

    return reference


def _avg_pool_call(count: int) -> Any:
    def reference(
        a: Any,
        kernel: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        include: bool = True,
        divisor: Any = None,
    ) -> Any:
        kernel, stride = _windows(kernel, stride, count)
        x = a if a.ndim == count + 2 else a[None]
        result = _avg_pool(x, kernel, stride, _each(padding, count), ceil_mode, include, divisor)
        return result if a.ndim == count + 2 else result[0]

    def named(a: Any, kernel: Any, **named: Any) -> Any:
        include, divisor = named.pop("count_include_pad", True), named.pop("divisor_override", None)
        return reference(a, kernel, **named, include=include, divisor=divisor)

    return named


def _lp_samples(count: int) -> Any:
    def samples(make: Any, dtype: DType) -> Iterator[Sample]:
        size, kernel = _SIZE[:count], _KERNEL[:count]
        options: Any
        for norm, options in ((2, {}), (3, {"stride": 2}), (1, {"stride": 1, "ceil_mode": True})):
            yield Sample(make(2, 2, *size, low=0.5, high=1.5), norm, kernel, **options)
        yield Sample(make(2, *size, low=0.5, high=1.5), 2, 2)
        yield Sample(make(0, 2, *size, low=0.5, high=1.5), 2, kernel)

    return samples


def _lp_pool(count: int) -> Any:
    def reference(a: Any, norm: Any, kernel: Any, **options: Any) -> Any:
        means = _avg_pool_call(count)(a**norm, kernel, **options)
        whole = math.prod(_each(kernel, count))
        return (means * whole) ** (1 / norm)

    return reference


def _sizes_samples(count: int) -> Any:
    def samples(make: Any, dtype: DType) -> Iterator[Sample]:
        yield Sample(make(2, 2, *_SIZE[:count]), 2)
        yield Sample(make(2, *_SIZE[:count]), (3, None, 1)[:count])
        yield Sample(make(1, 2, *(4, 6, 2)[:count]), (2, 3, 1)[:count])
        yield Sample(make(0, 2, *_SIZE[:count]), 2)

    return samples


def _adaptive_call(count: int, of: Any) -> Any:
    def reference(a: Any, size: Any, return_indices: bool = False) -> Any:
        x = a if a.ndim == count + 2 else a[None]
        each = zip(_each(size, count), x.shape[2:], strict=True)
        results = of(x, tuple(n if w is None else w for w, n in each))
        if a.ndim == count + 2:
            return results
        return tuple(r[0] for r in results) if isinstance(results, tuple) else results[0]

    return reference


def _largest(a: Any, box: Any) -> Any:
    """Return the place of the first of the largest elements within a box."""
    best = None
    for place in itertools.product(*box):
        if best is None or a[place] > a[best]:
            best = place
    return best


def _adaptive_max(a: Any, size: Any) -> Any:
    values = np.empty((*a.shape[:2], *size), a.dtype)
    indices = np.empty(values.shape, np.int64)
    for at in np.ndindex(*values.shape):
        box = [
            range(i * n // w, math.ceil((i + 1) * n / w))
            for i, n, w in zip(at[2:], a.shape[2:], size, strict=True)
        ]
        best = _largest(a[at[:2]], box)
        values[at] = a[at[:2] + best]
        indices[at] = np.ravel_multi_index(best, a.shape[2:])
    return values, indices


def _unpool_samples(count: int) -> Any:
    def samples(make: Any, dtype: DType) -> Iterator[Sample]:
        size = (2, 3, 2)[:count]
        whole = math.prod(2 * s for s in size)
        for lead in ((1, 2), (2,), (0, 2)):
            shape = (*lead, *size)
            # No place twice: which one stays would be open.
            places = make(*shape, dtype=int64, low=0, high=0)
            steps = arange(math.prod(size), device=places.device).reshape(size)
            yield Sample(make(*shape), places + steps * (whole // math.prod(size)), 2)

    return samples


def _unpool_of(count: int) -> Any:
    def reference(a: Any, places: Any, kernel: int) -> Any:
        lead = a.shape[: a.ndim - count]
        size = tuple(kernel * n for n in a.shape[a.ndim - count :])
        result = np.zeros((*lead, math.prod(size)), a.dtype)
        flat = places.reshape(*lead, math.prod(places.shape[len(lead) :]))
        np.put_along_axis(result, flat, a.reshape(flat.shape), -1)
        return result.reshape(*lead, *size)

    return reference


def _fractional_samples(count: int) -> Any:
    def samples(make: Any, dtype: DType) -> Iterator[Sample]:
        size = (6, 5, 4)[:count]
        for lead in ((2, 2), (0, 2)):
            moved = make(*lead, count, low=0.1, high=0.9)
            yield Sample(make(*lead, *size), 2, output_size=2, _random_samples=moved)
        moved = make(1, 2, count, low=0.1, high=0.9)
        yield Sample(make(2, *size), 2, output_ratio=0.5, _random_samples=moved)

    return samples


def _fractional(count: int, *, both: bool) -> Any:
    def reference(
        a: Any,
        kernel: int,
        output_size: Any = None,
        output_ratio: Any = None,
        _random_samples: Any = None,
    ) -> Any:
        x = a if a.ndim == count + 2 else a[None]
        size = x.shape[2:]
        wanted = [output_size or int(n * output_ratio) for n in size]
        values = np.empty((*x.shape[:2], *wanted), a.dtype)
        indices = np.empty(values.shape, np.int64)
        for at in np.ndindex(*values.shape):
            box = []
            for dim, (i, n, w) in enumerate(zip(at[2:], size, wanted, strict=True)):
                u = _random_samples[(*at[:2], count - 1 - dim if count == 2 else dim)]
                alpha = (n - kernel) / (w - 1)
                start = n - kernel if i == w - 1 else int((i + u) * alpha) - int(u * alpha)
                box.append(range(start, start + kernel))
            best = _largest(x[at[:2]], box)
            values[at] = x[at[:2] + best]
            indices[at] = np.ravel_multi_index(best, size)
        if a.ndim < count + 2:
            values, indices = values[0], indices[0]
        return (values, indices) if both else values

    return reference


def _calls(count: int) -> Iterator[OpRecord]:
    """Yield the records of the functions for so many dimensions."""
    padded = {"stride": 1, "padding": (1, 1, 0)[:count]}
    each = "%s" + f"{count}d"
    for both in (False, True):
        ending = "_with_indices" if both else ""
        name = each % "max_pool" + ending
        torch = {"torch": ""} if both else {}
        dilated = {"dilation": (2, 1, 1)[:count]}
        samples = _call_samples(count, padded, dilated)
        yield _named(name, samples, _max_pool_call(count, both=both), **torch)
        name = each % "adaptive_max_pool" + ending

        def maxima(a: Any, size: Any, both: bool = both) -> Any:
            return _adaptive_max(a, size) if both else _adaptive_max(a, size)[0]

        yield _named(name, _sizes_samples(count), _adaptive_call(count, maxima), **torch)
        if count > 1:
            yield _named(
                each % "fractional_max_pool" + ending,
                _fractional_samples(count),
                _fractional(count, both=both),
                torch="",
                atol={},
            )
    options = [padded, {**padded, "count_include_pad": False}]
    if count > 1:
        options.append({**padded, "divisor_override": 3})
    yield _named(each % "avg_pool", _call_samples(count, *options), _avg_pool_call(count))
    yield _named(
        each % "adaptive_avg_pool", _sizes_samples(count), _adaptive_call(count, _adaptive)
    )
    yield _named(each % "lp_pool", _lp_samples(count), _lp_pool(count))
    yield _named(each % "max_unpool", _unpool_samples(count), _unpool_of(count))


RECORDS = [
    _record("avg_pool_backward", _pool_samples, _pool),
    _record("max_pool", _max_pool_samples, _max_pool),
    _record("max_pool_backward", _max_pool_backward_samples, _max_pool_backward),
    _record("avg_pool", _avg_pool_samples, _avg_pool),
    _record("adaptive_avg_pool", _adaptive_samples, _adaptive),
    _record(
        "adaptive_avg_pool_backward",
        _adaptive_gradient_samples,
        lambda g, shape: _of_ones(_adaptive, g, shape, g.shape[2:]),
    ),
    *[record for count in (1, 2, 3) for record in _calls(count)],
]
