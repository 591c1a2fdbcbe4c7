"""Records of convolution."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.dtypes import DType

from ..records import Sample
from ._networks import layer_record
from .reductions import INEXACT


# --- windows ------------------------------------------------------------------------------------
def _offsets(kernel: Any) -> Iterator[tuple[int, ...]]:
    return itertools.product(*map(range, kernel))


def _places(at: Any, where: Any, stride: Any, dilation: Any) -> tuple[Any, ...]:
    return tuple(
        slice(i * d, i * d + s * (w - 1) + 1, s)
        for i, w, s, d in zip(at, where, stride, dilation, strict=True)
    )


def _positions(size: Any, kernel: Any, stride: Any, dilation: Any) -> tuple[int, ...]:
    return tuple(
        (n - d * (k - 1) - 1) // s + 1
        for n, k, s, d in zip(size, kernel, stride, dilation, strict=True)
    )


def _unfold_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 1, 5), (2,), (1,), (1,))
    yield Sample(make(1, 2, 5, 6), (2, 3), (2, 1), (1, 2))
    yield Sample(make(1, 1, 3, 4, 3), (2, 2, 2), (1, 2, 1), (1, 1, 2))
    yield Sample(make(0, 2, 4), (2,), (1,), (1,))


def _unfold(a: Any, kernel: Any, stride: Any, dilation: Any) -> Any:
    where = _positions(a.shape[2:], kernel, stride, dilation)
    result = np.empty((*a.shape[:2], *where, *kernel), a.dtype)
    for at in _offsets(kernel):
        place: Any = (..., *_places(at, where, stride, dilation))
        offset: Any = (..., *at)
        result[offset] = a[place]
    return result


def _fold_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 1, 4, 2), (5,), (2,), (1,), (1,))
    yield Sample(make(1, 2, 2, 2, 2, 3), (5, 6), (2, 3), (2, 1), (1, 2))
    yield Sample(make(0, 1, 4, 2), (5,), (2,), (1,), (1,))


def _fold(windows: Any, size: Any, kernel: Any, stride: Any, dilation: Any) -> Any:
    where = windows.shape[2 : 2 + len(kernel)]
    result = np.zeros((*windows.shape[:2], *size), windows.dtype)
    for at in _offsets(kernel):
        result[(..., *_places(at, where, stride, dilation))] += windows[(..., *at)]
    return result


# --- convolution --------------------------------------------------------------------------------

# (spatial size, kernel, stride, padding, dilation, groups)
_CONVOLUTIONS: list[tuple[Any, ...]] = [
    ((6,), (3,), (1,), (0,), (1,), 1),
    ((5, 6), (2, 3), (2, 1), (1, 0), (1, 2), 2),
    ((4, 4), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((3, 4, 3), (2, 1, 2), (1, 2, 1), (0, 0, 1), (1, 1, 1), 1),
]


def _output(size: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> tuple[int, ...]:
    wide = [n + 2 * p for n, p in zip(size, padding, strict=True)]
    return _positions(wide, kernel, stride, dilation)


def _convolution_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for size, kernel, *options, groups in _CONVOLUTIONS:
        bias = make(4) if groups == 1 else None
        yield Sample(make(2, 2, *size), make(4, 2 // groups, *kernel), bias, *options, groups)
    yield Sample(make(0, 2, 4), make(4, 2, 2), None, (1,), (0,), (1,), 1)


def _input_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for size, kernel, *options, groups in _CONVOLUTIONS:
        gradient = make(2, 4, *_output(size, kernel, *options))
        yield Sample(gradient, make(4, 2 // groups, *kernel), size, *options, groups)
    yield Sample(make(0, 4, 3), make(4, 2, 2), (4,), (1,), (0,), (1,), 1)


def _weight_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for size, kernel, *options, groups in _CONVOLUTIONS:
        gradient = make(2, 4, *_output(size, kernel, *options))
        yield Sample(make(2, 2, *size), gradient, kernel, *options, groups)
    yield Sample(make(0, 2, 4), make(0, 4, 3), (2,), (1,), (0,), (1,), 1)


def _padded(a: Any, padding: Any) -> Any:
    return np.pad(a, [(0, 0), (0, 0), *[(p, p) for p in padding]])


def _pairs(outputs: int, inputs: int, groups: int) -> Iterator[tuple[int, int, int]]:
    """Yield which output channel reads which input channel, and by which column of the weight."""
    for o in range(outputs):
        group = o // (outputs // groups)
        for c in range(inputs // groups):
            yield o, group * (inputs // groups) + c, c


def _convolution(
    a: Any, w: Any, b: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    x = _padded(a, padding)
    kernel = w.shape[2:]
    where = _positions(x.shape[2:], kernel, stride, dilation)
    result = np.zeros((len(a), len(w), *where), np.result_type(a, w))
    for o, i, c in _pairs(len(w), a.shape[1], groups):
        for at in _offsets(kernel):
            result[:, o] += (
                w[(o, c, *at)] * x[(slice(None), i, *_places(at, where, stride, dilation))]
            )
    return result if b is None else result + b.reshape(-1, *[1] * len(where))


def _convolution_input(
    g: Any, w: Any, size: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    inputs = w.shape[1] * groups
    wide = [n + 2 * p for n, p in zip(size, padding, strict=True)]
    result = np.zeros((len(g), inputs, *wide), np.result_type(g, w))
    for o, i, c in _pairs(len(w), inputs, groups):
        for at in _offsets(w.shape[2:]):
            place: Any = (slice(None), i, *_places(at, g.shape[2:], stride, dilation))
            result[place] += w[(o, c, *at)] * g[:, o]
    inner: Any = (..., *[slice(p, p + n) for p, n in zip(padding, size, strict=True)])
    return result[inner]


def _convolution_weight(
    a: Any, g: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    x = _padded(a, padding)
    outputs, inputs = g.shape[1], a.shape[1]
    result = np.zeros((outputs, inputs // groups, *kernel), np.result_type(a, g))
    for o, i, c in _pairs(outputs, inputs, groups):
        for at in _offsets(kernel):
            seen = x[(slice(None), i, *_places(at, g.shape[2:], stride, dilation))]
            result[(o, c, *at)] = np.sum(seen * g[:, o])
    return result


RECORDS = [
    layer_record("unfold_windows", _unfold_samples, _unfold, dtypes=INEXACT),
    layer_record("fold_windows", _fold_samples, _fold, dtypes=INEXACT),
    layer_record("convolution", _convolution_samples, _convolution, dtypes=INEXACT),
    layer_record("convolution_input", _input_samples, _convolution_input, dtypes=INEXACT),
    layer_record("convolution_weight", _weight_samples, _convolution_weight, dtypes=INEXACT),
]
