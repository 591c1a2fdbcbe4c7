"""Records of normalisation in one op."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.dtypes import FLOATS, DType

from ...records import OpRecord, Sample
from .._networks import ORDER, SUMS

# Shape, length of a row, number of weights and for how many elements each counts.
_ROWS = [
    ((4, 6), 6, 6, 1),
    ((2, 3, 8), 24, 24, 1),
    ((2, 6, 5), 15, 6, 5),
    ((3, 4), 2, 4, 1),
    ((2, 3, 2, 2), 4, 3, 4),
    ((0, 3), 3, 3, 1),
]


def _row_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for shape, length, _, _ in _ROWS:
        yield Sample(make(*shape), length, 1e-3, True)
        yield Sample(make(*shape), length, 0.1, False)


def _row_norm(a: Any, length: int, eps: float, centred: bool) -> Any:
    if not a.size:
        return a
    rows = a.reshape(-1, length)
    if centred:
        rows = rows - rows.mean(1, keepdims=True)
    return (rows / np.sqrt((rows * rows).mean(1, keepdims=True) + eps)).reshape(a.shape)


def _row_gradient_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for sample in _row_samples(make, dtype):
        yield Sample(make(*sample.args[0].shape), *sample.args)


def _row_norm_gradient(g: Any, a: Any, length: int, eps: float, centred: bool) -> Any:
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


def _affine_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for shape, length, weights, repeat in _ROWS:
        x, weight, bias = make(*shape), make(weights), make(weights)
        yield Sample([x, weight, bias], length, repeat, 1e-3, True)
        yield Sample([x, weight], length, repeat, 0.1, False)


def _in_turn(weight: Any, repeat: int, like: Any) -> Any:
    return np.resize(np.repeat(weight, repeat), like.shape)


def _affine_row_norm(inputs: Any, length: int, repeat: int, eps: float, centred: bool) -> Any:
    a, weight, *bias = inputs
    result = _row_norm(a, length, eps, centred) * _in_turn(weight, repeat, a)
    return result + _in_turn(bias[0], repeat, a) if bias else result


def _affine_gradient_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for sample in _affine_samples(make, dtype):
        (x, weight, *_), *rest = sample.args
        yield Sample(make(*x.shape), x, weight, *rest)


def _affine_row_norm_gradient(
    g: Any, a: Any, weight: Any, length: int, repeat: int, eps: float, centred: bool
) -> Any:
    inner = g * _in_turn(weight, repeat, a)
    output = _row_norm(a, length, eps, centred)

    def total(v: Any) -> Any:
        if not a.size:
            return np.zeros_like(weight)
        return v.reshape(-1, weight.size, repeat).sum((0, 2))

    return _row_norm_gradient(inner, a, length, eps, centred), total(g * output), total(g)


def _channel_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for shape in ((4, 3), (2, 3, 5), (3, 2, 4, 3), (0, 2, 3)):
        c = shape[1]
        x, mean, variance = make(*shape), make(c), make(c, low=0.5, high=2.0)
        yield Sample([x, mean, variance, make(c), make(c)], 1e-3)
        yield Sample([x, mean, variance], 0.1)


def _channel_norm(inputs: Any, eps: float) -> Any:
    a, *rest = inputs
    shape = (1, -1, *[1] * (a.ndim - 2))
    mean, variance, *affine = [v.reshape(shape) for v in rest]
    result = (a - mean) / np.sqrt(variance + eps)
    return result * affine[0] + affine[1] if affine else result


def _channel_gradient_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for shape in ((4, 3), (2, 3, 5), (3, 2, 4, 3), (0, 2, 3)):
        c = shape[1]
        yield Sample(make(*shape), make(*shape), make(c), make(c, low=0.5, high=2.0), make(c), 1e-3)


def _channel_norm_gradient(
    g: Any, a: Any, mean: Any, variance: Any, weight: Any, eps: float
) -> Any:
    shape, dims = (1, -1, *[1] * (a.ndim - 2)), (0, *range(2, a.ndim))
    rstd = 1 / np.sqrt(variance + eps)
    g_weight = (g * (a - mean.reshape(shape))).sum(dims) * rstd
    return g * (rstd * weight).reshape(shape), g_weight, g.sum(dims)


def _unit_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(4, 6), 1, 1e-3)
    yield Sample(make(3, 4, 2), 1, 1e-3)
    yield Sample(make(5), 0, 100.0)
    yield Sample(make(0, 3), 0, 1e-3)


def _unit_vectors(a: Any, dim: int, eps: float) -> Any:
    return a / np.maximum(np.sqrt((a * a).sum(dim, keepdims=True)), eps)


def _unit_gradient_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for sample in _unit_samples(make, dtype):
        yield Sample(make(*sample.args[0].shape), *sample.args)


def _unit_vectors_gradient(g: Any, a: Any, dim: int, eps: float) -> Any:
    length = np.sqrt((a * a).sum(dim, keepdims=True))
    above = length >= eps
    length = np.maximum(length, eps)
    output = a / length
    return (g - output * (g * output).sum(dim, keepdims=True) * above) / length


def _record(op: str, samples: Any, reference: Any) -> OpRecord:
    return OpRecord(op, samples, reference, dtypes=FLOATS, atol=SUMS, rtol=ORDER, torch="")


RECORDS = [
    _record("row_norm", _row_samples, _row_norm),
    _record("row_norm_gradient", _row_gradient_samples, _row_norm_gradient),
    _record("affine_row_norm", _affine_samples, _affine_row_norm),
    _record("affine_row_norm_gradient", _affine_gradient_samples, _affine_row_norm_gradient),
    _record("channel_norm", _channel_samples, _channel_norm),
    _record("channel_norm_gradient", _channel_gradient_samples, _channel_norm_gradient),
    _record("unit_vectors", _unit_samples, _unit_vectors),
    _record("unit_vectors_gradient", _unit_gradient_samples, _unit_vectors_gradient),
]
