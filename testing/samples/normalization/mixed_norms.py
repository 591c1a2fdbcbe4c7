"""Records of normalisation by float32 numbers, and of the gradient of average pooling."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.dtypes import FLOATS, DType, dtype_named, float32

from ...records import OpRecord, Sample

# Sums of several rounded numbers.
_ATOL: dict[str, float] = {"float16": 2e-2, "bfloat16": 1.5e-1}
_RTOL = {"float32": 1e-5}
_HALVES = (dtype_named("float16"), dtype_named("bfloat16"))

# --- images ---------------------------------------------------------------------------------------
_IMAGES = ((4, 3), (2, 3, 5), (3, 2, 4, 3))
_NO_CHANNELS = (2, 0, 3)


def _batch_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for shape in (*_IMAGES, _NO_CHANNELS):
        weights = [make(shape[1], dtype=float32) for _ in range(2)]
        yield Sample([make(*shape), *weights], 1e-2)


def _batch(inputs: Any, eps: float) -> Any:
    a, weight, bias = inputs
    dims, shape = (0, *range(2, a.ndim)), (1, -1, *[1] * (a.ndim - 2))
    mean, rstd = a.mean(dims), 1 / np.sqrt(a.var(dims) + eps)
    standard = (a - mean.reshape(shape)) * rstd.reshape(shape)
    return standard * weight.reshape(shape) + bias.reshape(shape), mean, rstd


def _batch_gradient_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for shape in (*_IMAGES, _NO_CHANNELS):
        numbers = [make(shape[1], dtype=float32) for _ in range(4)]
        rstd = make(shape[1], dtype=float32, low=0.5, high=2.0)
        yield Sample(make(*shape), *numbers[:2], make(*shape), *numbers[2:], rstd)


def _batch_gradient(
    g: Any, g_mean: Any, g_rstd: Any, a: Any, weight: Any, mean: Any, rstd: Any
) -> Any:
    dims, shape = (0, *range(2, a.ndim)), (1, -1, *[1] * (a.ndim - 2))
    wide = [n.reshape(shape) for n in (g_mean, g_rstd, weight, mean, rstd)]
    standard = (a - wide[3]) * wide[4]
    g_input = _standard_gradient(g * wide[2], wide[0], wide[1], standard, wide[4], dims)
    return g_input, (g * standard).sum(dims), g.sum(dims)


def _standard_gradient(
    g: Any, g_mean: Any, g_rstd: Any, standard: Any, rstd: Any, dims: Any
) -> Any:
    n = math.prod(standard.shape[d] for d in dims)
    along = (g * standard).mean(dims, keepdims=True)
    mean = g.mean(dims, keepdims=True)
    return rstd * (g - mean - standard * along) + g_mean / n - g_rstd * rstd**2 * standard / n


def _channel_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for shape in (*_IMAGES, (2, 3, 0)):
        for count in (0, 2):
            mean, *affine = [make(shape[1], dtype=float32) for _ in range(1 + count)]
            variance = make(shape[1], dtype=float32, low=0.5, high=2.0)
            yield Sample([make(*shape), mean, variance, *affine], 1e-2)


def _channel(inputs: Any, eps: float) -> Any:
    a, mean, variance, *affine = inputs
    shape = (1, -1, *[1] * (a.ndim - 2))
    result = (a - mean.reshape(shape)) / np.sqrt(variance.reshape(shape) + eps)
    return result * affine[0].reshape(shape) + affine[1].reshape(shape) if affine else result


def _mixed_record(op: str, samples: Any, reference: Any, dtypes: Any = FLOATS) -> OpRecord:
    return OpRecord(op, samples, reference, dtypes=dtypes, atol=_ATOL, rtol=_RTOL, torch="")


RECORDS = [
    _mixed_record("batch_normalize_mixed", _batch_samples, _batch, _HALVES),
    _mixed_record(
        "batch_normalize_mixed_gradient", _batch_gradient_samples, _batch_gradient, _HALVES
    ),
    _mixed_record("channel_norm_mixed", _channel_samples, _channel, _HALVES),
]
