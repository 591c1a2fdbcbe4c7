"""Records of normalization."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import DType, float32, float64

from ...records import OpRecord, Sample
from .._differences import ROUGH, by_differences
from .._networks import layer_record

# --- rows -----------------------------------------------------------------------------------------

_LAYERS = [((4, 6), (6,)), ((2, 3, 8), (3, 8)), ((3, 4), (4,)), ((0, 3), (3,))]
_GROUPS = [((4, 6), 2), ((2, 6, 5), 2), ((2, 3, 2, 2), 3), ((0, 4, 3), 2)]


def _layer_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for shape, last in _LAYERS:
        yield Sample(make(*shape), last, make(*last), make(*last), 1e-3)
        yield Sample(make(*shape), last, make(*last), eps=0.1)
        yield Sample(make(*shape), last, eps=1e-3)
    yield Sample(make(4, 6), (6,), None, make(6))


def _rms_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for shape, last in _LAYERS:
        yield Sample(make(*shape), last, make(*last), 1e-3)
        yield Sample(make(*shape), last, None, 0.1)


def _group_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for shape, groups in _GROUPS:
        c = shape[1]
        yield Sample(make(*shape), groups, make(c), make(c), 1e-3)
        yield Sample(make(*shape), groups, make(c), eps=0.1)
        yield Sample(make(*shape), groups, eps=1e-2)


def _rows(a: Any, length: int, eps: float, centred: bool = True) -> Any:
    if not a.size:
        return a
    rows = a.reshape(-1, length)
    if centred:
        rows = rows - rows.mean(1, keepdims=True)
    return (rows / np.sqrt((rows * rows).mean(1, keepdims=True) + eps)).reshape(a.shape)


def _affine(a: Any, weight: Any, bias: Any) -> Any:
    a = a if weight is None else a * weight
    return a if bias is None else a + bias


def _layer_norm(a: Any, last: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    return _affine(_rows(a, math.prod(last), eps), weight, bias)


def _rms_norm(a: Any, last: Any, weight: Any, eps: float) -> Any:
    return _affine(_rows(a, math.prod(last), eps, False), weight, None)


def _along(a: Any, *numbers: Any) -> list[Any]:
    """Return numbers of channels as they broadcast against images."""
    shape = (1, -1, *[1] * (a.ndim - 2))
    return [None if n is None else n.reshape(shape) for n in numbers]


def _group_norm(a: Any, groups: int, weight: Any = None, bias: Any = None, eps: float = 1) -> Any:
    length = math.prod(a.shape[1:]) // groups
    return _affine(_rows(a, length, eps), *_along(a, weight, bias))


def _statistics_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for sizes, shape in (
        ((3, 4), (3, 1)),
        ((2, 3, 4), (2,)),
        ((5,), ()),
        ((40, 30), (2, 20)),
        ((6,), (6,)),
    ):
        yield Sample(make(*sizes), shape, 1e-3)
    yield Sample(make(4, 6).t(), (6,), 1e-3)


def _statistics(a: Any, shape: tuple[int, ...], eps: float) -> Any:
    rows = a.reshape(*shape, -1)
    return rows.mean(-1), 1 / np.sqrt(rows.var(-1) + eps)


def _layer_backward_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for shape, last in _LAYERS:
        for weight in (make(*last), None):
            yield Sample(make(*shape), make(*shape), last, weight, 1e-3)


def _group_backward_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for shape, groups in _GROUPS:
        for weight in (make(shape[1]), None):
            yield Sample(make(*shape), make(*shape), groups, weight, 1e-3)


def _rows_backward(g: Any, a: Any, length: int, eps: float, centred: bool = True) -> Any:
    if not a.size:
        return a
    p, x = g.reshape(-1, length), a.reshape(-1, length)
    if centred:
        x = x - x.mean(1, keepdims=True)
    square = (x * x).mean(1, keepdims=True) + eps
    result = p - x * (p * x).mean(1, keepdims=True) / square
    if centred:
        result = result - p.mean(1, keepdims=True)
    return (result / np.sqrt(square)).reshape(a.shape)


_NOTHING = np.zeros(0)


def _last_backward(centred: bool) -> Any:
    def reference(g: Any, a: Any, last: Any, weight: Any, eps: float) -> Any:
        length = math.prod(last)
        inner = g if weight is None else g * weight
        g_input = _rows_backward(inner, a, length, eps, centred)
        dims = tuple(range(a.ndim - len(last)))
        sums = [_NOTHING, _NOTHING]
        if weight is not None:
            sums = [(g * _rows(a, length, eps, centred)).sum(dims), g.sum(dims)]
        return (g_input, *sums) if centred else (g_input, sums[0])

    return reference


def _group_backward(g: Any, a: Any, groups: int, weight: Any, eps: float) -> Any:
    length = math.prod(a.shape[1:]) // groups
    inner = g if weight is None else g * _along(a, weight)[0]
    g_input = _rows_backward(inner, a, length, eps)
    if weight is None:
        return g_input, _NOTHING, _NOTHING
    dims = (0, *range(2, a.ndim))
    return g_input, (g * _rows(a, length, eps)).sum(dims), g.sum(dims)


def _instance_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 3, 5), weight=make(3), bias=make(3), eps=1e-2)
    yield Sample(make(2, 3, 4, 2), eps=1e-2)
    yield Sample(make(0, 3, 5), eps=1e-2)


def _instance_norm(a: Any, weight: Any = None, bias: Any = None, eps: float = 1) -> Any:
    return _group_norm(a, a.shape[1], weight, bias, eps)


# --- batches --------------------------------------------------------------------------------------

_IMAGES = ((4, 3), (2, 3, 5), (3, 2, 4, 3), (2, 0, 3))


def _of_numbers(dtype: DType) -> tuple[DType, ...]:
    """Return the dtypes that numbers of channels may have beside images of one."""
    return (dtype, float32) if dtype.itemsize == 2 else (dtype,)


def _native_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for shape in _IMAGES:
        for given in _of_numbers(dtype):
            weights = [make(shape[1], dtype=given) for _ in range(2)]
            yield Sample(make(*shape), *weights, 1e-2)
    yield Sample(make(2, 3, 5), None, None, 1e-2)


def _native(a: Any, weight: Any, bias: Any, eps: float) -> Any:
    dims = (0, *range(2, a.ndim))
    mean, rstd = a.mean(dims), 1 / np.sqrt(a.var(dims) + eps)
    middle, scale = _along(a, mean, rstd)
    return _affine((a - middle) * scale, *_along(a, weight, bias)), mean, rstd


def _native_backward_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for shape in _IMAGES:
        c = shape[1]
        for given in _of_numbers(dtype):
            numbers = [make(c, dtype=given) for _ in range(4)]
            rstd = make(c, dtype=given, low=0.5, high=2.0)
            yield Sample(make(*shape), *numbers[:2], make(*shape), *numbers[2:], rstd)
    rstd = make(3, low=0.5, high=2.0)
    yield Sample(make(4, 3), make(3), make(3), make(4, 3), None, make(3), rstd)


def _native_backward(
    g: Any, g_mean: Any, g_rstd: Any, a: Any, weight: Any, mean: Any, rstd: Any
) -> Any:
    dims = (0, *range(2, a.ndim))
    n = math.prod([a.shape[d] for d in dims])
    to_mean, to_rstd, w, middle, scale = _along(a, g_mean, g_rstd, weight, mean, rstd)
    x = (a - middle) * scale
    inner = g if weight is None else g * w
    along = (inner * x).mean(dims, keepdims=True)
    result = scale * (inner - inner.mean(dims, keepdims=True) - x * along)
    result = result + to_mean / n - to_rstd * scale**2 * x / n
    if weight is None:
        return result, _NOTHING, _NOTHING
    return result, (g * x).sum(dims), g.sum(dims)


def _inference_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for shape in (*_IMAGES, (0, 2, 3)):
        c = shape[1]
        for given in _of_numbers(dtype):
            mean, variance = make(c, dtype=given), make(c, dtype=given, low=0.5, high=2.0)
            yield Sample(
                make(*shape), mean, variance, make(c, dtype=given), make(c, dtype=given), 1e-2
            )
            yield Sample(make(*shape), mean, variance, None, None, 0.1)


def _inference(a: Any, mean: Any, variance: Any, weight: Any, bias: Any, eps: float) -> Any:
    middle, square, *affine = _along(a, mean, variance, weight, bias)
    return _affine((a - middle) / np.sqrt(square + eps), *affine)


def _inference_backward_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for shape in (*_IMAGES, (0, 2, 3)):
        c = shape[1]
        variance = make(c, low=0.5, high=2.0)
        yield Sample(make(*shape), make(*shape), make(c), variance, make(c), 1e-3)


def _inference_backward(g: Any, a: Any, mean: Any, variance: Any, weight: Any, eps: float) -> Any:
    dims, rstd = (0, *range(2, a.ndim)), 1 / np.sqrt(variance + eps)
    middle, scale = _along(a, mean, rstd * weight)
    return g * scale, (g * (a - middle)).sum(dims) * rstd, g.sum(dims)


def _batch_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for shape in _IMAGES[:3]:
        c = shape[1]
        weights = [make(c) for _ in range(2)]
        yield Sample(make(*shape), None, None, *weights, True, eps=1e-2)
        yield Sample(make(*shape), make(c), make(c, low=0.5, high=2.0), *weights, eps=1e-2)
        yield Sample(make(*shape), make(c), make(c, low=0.5, high=2.0), weights[0], eps=1e-2)
    yield Sample(make(0, 3, 5), make(3), make(3, low=0.5, high=2.0), make(3), eps=1e-2)


def _batch_norm(
    a: Any, mean: Any, variance: Any, weight: Any, bias: Any = None, training: bool = False,
    eps: float = 1,
) -> Any:  # fmt: skip
    if training:
        return _native(a, weight, bias, eps)[0]
    return _inference(a, mean, variance, weight, bias, eps)


# --- vectors --------------------------------------------------------------------------------------


def _normalize_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(4, 6), 2, 1, 1e-3)
    yield Sample(make(3, 4, 2), dim=-2, eps=1e-3)
    yield Sample(make(5), dim=0, eps=100.0)
    yield Sample(make(0, 3), dim=0)
    yield Sample(make(4, 3), 1.0, 0)


def _normalize(a: Any, p: float = 2, dim: int = 1, eps: float = 1e-12) -> Any:
    lengths = (np.abs(a) ** p).sum(dim, keepdims=True) ** (1 / p)
    return a / np.maximum(lengths, eps)


def _normalize_backward_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for shape, dim, eps in (((4, 6), 1, 1e-3), ((3, 4, 2), 1, 1e-3), ((5,), 0, 100.0)):
        yield Sample(make(*shape), make(*shape), dim, eps)
    yield Sample(make(0, 3), make(0, 3), 0, 1e-3)


def _normalize_backward(g: Any, a: Any, dim: int, eps: float) -> Any:
    length = np.sqrt((a * a).sum(dim, keepdims=True))
    above = length >= eps
    length = np.maximum(length, eps)
    output = a / length
    return (g - output * (g * output).sum(dim, keepdims=True) * above) / length


def _response_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 5, 3), 3, 0.5)
    yield Sample(make(1, 4, 2, 2), 2, 0.5, 0.5, 2.0)
    yield Sample(make(0, 5, 3), 3, 0.5)


def _response(a: Any, size: int, alpha: float, beta: float = 0.75, k: float = 1.0) -> Any:
    channels = a.shape[1]
    means = np.zeros_like(a)
    for c in range(channels):
        first = c - size // 2
        near = slice(max(first, 0), min(first + size, channels))
        means[:, c] = (a[:, near] ** 2).sum(1) / size
    return a / (means * alpha + k) ** beta


def _response_backward_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 5, 3), make(2, 5, 3), 3, 0.5, 0.75, 1.0)
    yield Sample(make(1, 4, 2, 2), make(1, 4, 2, 2), 2, 0.5, 0.5, 2.0)
    yield Sample(make(0, 5, 3), make(0, 5, 3), 3, 0.5, 0.75, 1.0)


RECORDS = [
    OpRecord(
        "local_response_norm_backward",
        _response_backward_samples,
        by_differences(_response, 0),
        (float32, float64),
        atol=ROUGH,
        torch="",
    ),
    layer_record("layer_norm", _layer_samples, _layer_norm),
    layer_record("layer_norm_backward", _layer_backward_samples, _last_backward(True)),
    layer_record("rms_norm", _rms_samples, _rms_norm),
    layer_record(
        "row_statistics",
        _statistics_samples,
        _statistics,
        never_empty="rows without elements have no mean, and no rows are refused with them",
    ),
    layer_record("rms_norm_backward", _layer_backward_samples, _last_backward(False)),
    layer_record("group_norm", _group_samples, _group_norm),
    layer_record("group_norm_backward", _group_backward_samples, _group_backward),
    layer_record("instance_norm", _instance_samples, _instance_norm),
    layer_record("batch_norm", _batch_samples, _batch_norm),
    layer_record("native_batch_norm", _native_samples, _native),
    layer_record("native_batch_norm_backward", _native_backward_samples, _native_backward),
    layer_record("batch_norm_inference", _inference_samples, _inference),
    layer_record("batch_norm_inference_backward", _inference_backward_samples, _inference_backward),
    layer_record("normalize", _normalize_samples, _normalize),
    layer_record("normalize_backward", _normalize_backward_samples, _normalize_backward),
    layer_record("local_response_norm", _response_samples, _response),
]
