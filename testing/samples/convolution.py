"""Records of convolution."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import DType

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


def _im2col_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 1, 5), (2,), (1,), (0,), (1,))
    yield Sample(make(1, 2, 5, 6), (2, 3), (1, 2), (1, 0), (2, 1))
    yield Sample(make(1, 1, 3, 4, 3), (2, 2, 2), (1, 1, 2), (0, 0, 1), (1, 2, 1))
    yield Sample(make(0, 2, 4), (2,), (1,), (0,), (1,))


def _im2col(a: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    x = _padded(a, padding)
    where = _positions(x.shape[2:], kernel, stride, dilation)
    columns = [
        x[(..., *_places(at, where, stride, dilation))].reshape(*a.shape[:2], math.prod(where))
        for at in _offsets(kernel)
    ]
    return np.stack(columns, 2).reshape(len(a), -1 if len(a) else 4, math.prod(where))


def _col2im_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 2, 4), (5,), (2,), (1,), (0,), (1,))
    yield Sample(make(1, 12, 6), (5, 6), (2, 3), (1, 2), (1, 0), (2, 1))
    yield Sample(make(0, 2, 4), (5,), (2,), (1,), (0,), (1,))


def _col2im(columns: Any, size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    n, rows, _ = columns.shape
    wide = tuple(s + 2 * p for s, p in zip(size, padding, strict=True))
    where = _positions(wide, kernel, stride, dilation)
    windows = columns.reshape(n, rows // math.prod(kernel), *kernel, *where)
    result = np.zeros((*windows.shape[:2], *wide), columns.dtype)
    for at in _offsets(kernel):
        result[(..., *_places(at, where, stride, dilation))] += windows[
            (slice(None), slice(None), *at)
        ]
    inner: Any = (..., *[slice(p, p + s) for s, p in zip(size, padding, strict=True)])
    return result[inner]


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


# --- as users call them ---------------------------------------------------------------------------


def _conv_samples(count: int) -> Any:
    def samples(make: Any, dtype: DType) -> Iterator[Sample]:
        size, kernel = (5, 4, 6)[:count], (3, 2, 1)[:count]
        x, weight = make(2, 2, *size), make(4, 2, *kernel)
        yield Sample(x, weight, make(4))
        yield Sample(x, weight, padding=1, stride=2)
        yield Sample(make(2, *size), weight[:, :1], make(4), dilation=(2, 1, 1)[:count], groups=2)
        yield Sample(make(2, 2, *size), weight, padding="same", label="same")
        yield Sample(make(0, 2, *size), weight)

    return samples


def _conv(
    a: Any,
    w: Any,
    b: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    count = w.ndim - 2
    if a.ndim < w.ndim:
        return _conv(a[None], w, b, stride, padding, dilation, groups)[0]
    if padding == "same":
        total = [k - 1 for k in w.shape[2:]]
        a = np.pad(a, [(0, 0), (0, 0), *[(t // 2, t - t // 2) for t in total]])
        padding = 0
    stride, padding, dilation = [
        n if isinstance(n, tuple) else (n,) * count for n in (stride, padding, dilation)
    ]
    return _convolution(a, w, b, stride, padding, dilation, groups)


def _transpose_samples(count: int) -> Any:
    def samples(make: Any, dtype: DType) -> Iterator[Sample]:
        size, kernel = (3, 2, 2)[:count], (2, 3, 1)[:count]
        x, weight = make(2, 4, *size), make(4, 2, *kernel)
        yield Sample(x, weight, make(2))
        yield Sample(x, weight, stride=2, output_padding=1)
        yield Sample(make(4, *size), weight[:, :1], make(2), groups=2, padding=(1, 0, 0)[:count])
        yield Sample(make(2, 4, *size), weight, dilation=2, output_padding=1, label="beyond")
        yield Sample(make(0, 4, *size), weight)

    return samples


def _transpose(
    a: Any,
    w: Any,
    b: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    count = w.ndim - 2
    if a.ndim < w.ndim:
        return _transpose(a[None], w, b, stride, padding, output_padding, groups, dilation)[0]
    stride, padding, extra, dilation = [
        n if isinstance(n, tuple) else (n,) * count
        for n in (stride, padding, output_padding, dilation)
    ]
    size = tuple(
        (n - 1) * s + d * (k - 1) + 1
        for n, s, d, k in zip(a.shape[2:], stride, dilation, w.shape[2:], strict=True)
    )
    whole = _convolution_input(a, w, size, stride, (0,) * count, dilation, groups)
    whole = np.pad(whole, [(0, 0), (0, 0), *[(0, e) for e in extra]])
    inner: Any = (..., *[slice(p, n - p) for n, p in zip(whole.shape[2:], padding, strict=True)])
    result = whole[inner]
    return result if b is None else result + b.reshape(-1, *[1] * count)


def _tbc_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(5, 2, 3), make(2, 3, 4), make(4))
    yield Sample(make(5, 2, 3), make(2, 3, 4), make(4), 1)
    yield Sample(make(5, 0, 3), make(2, 3, 4), make(4))


def _tbc(a: Any, w: Any, b: Any, pad: int = 0) -> Any:
    return _conv(a.transpose(1, 2, 0), w.transpose(2, 1, 0), b, padding=pad).transpose(2, 0, 1)


def _named(name: str, samples: Any, reference: Any) -> Any:
    """Return the record of a function of nn.functional."""
    torch = f"nn.functional.{name}"
    return layer_record(name, samples, reference, dtypes=INEXACT, torch=torch)


RECORDS = [
    layer_record("im2col", _im2col_samples, _im2col, dtypes=INEXACT),
    layer_record("col2im", _col2im_samples, _col2im, dtypes=INEXACT),
    layer_record("convolution", _convolution_samples, _convolution, dtypes=INEXACT),
    layer_record("convolution_input", _input_samples, _convolution_input, dtypes=INEXACT),
    layer_record("convolution_weight", _weight_samples, _convolution_weight, dtypes=INEXACT),
    *[_named(f"conv{n}d", _conv_samples(n), _conv) for n in (1, 2, 3)],
    *[_named(f"conv_transpose{n}d", _transpose_samples(n), _transpose) for n in (1, 2, 3)],
    _named("conv_tbc", _tbc_samples, _tbc),
]
