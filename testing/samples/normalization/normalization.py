"""Records of normalization."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.dtypes import DType

from ...records import Sample
from .._networks import layer_record


def _standardize_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(4, 3), (0,), 1e-3)
    yield Sample(make(2, 3, 4), (0, 2), 1e-5)
    yield Sample(make(2, 6), (1,), 0.1)
    yield Sample(make(0, 3), (1,), 0.1)


def _standardize(a: Any, dim: Any, eps: float) -> Any:
    mean = a.mean(dim, keepdims=True)
    rstd = 1 / np.sqrt(a.var(dim, keepdims=True) + eps)
    return (a - mean) * rstd, mean, rstd


def _standardize_gradient_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(
        make(4, 3), make(1, 3), make(1, 3), make(4, 3), make(1, 3, low=0.5, high=2.0), (0,)
    )
    yield Sample(
        make(2, 3, 4), make(1, 3, 1), make(1, 3, 1), make(2, 3, 4),
        make(1, 3, 1, low=0.5, high=2.0), (0, 2),
    )  # fmt: skip
    yield Sample(make(0, 3), make(0, 1), make(0, 1), make(0, 3), make(0, 1), (1,))


def _standardize_gradient(g: Any, gm: Any, gr: Any, output: Any, rstd: Any, dim: Any) -> Any:
    n = math.prod(output.shape[d] for d in dim)
    mean = g.mean(dim, keepdims=True)
    along = (g * output).mean(dim, keepdims=True)
    return rstd * (g - mean - output * along) + gm / n - gr * rstd**2 * output / n


def _batch_normalize_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample([make(4, 3), make(3), make(3)], 1e-3)
    yield Sample([make(2, 3, 5), make(3), make(3)], 1e-5)
    yield Sample([make(3, 2, 4, 3), make(2), make(2)], 0.1)
    yield Sample([make(2, 0, 3), make(0), make(0)], 0.1)


def _batch_normalize(inputs: Any, eps: float) -> Any:
    a, weight, bias = inputs
    shape = (1, -1, *[1] * (a.ndim - 2))
    output, mean, rstd = _standardize(a, (0, *range(2, a.ndim)), eps)
    return output * weight.reshape(shape) + bias.reshape(shape), mean.reshape(-1), rstd.reshape(-1)


def _batch_normalize_gradient_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for shape in ((4, 3), (2, 3, 5), (3, 2, 4, 3), (2, 0, 3)):
        c = shape[1]
        yield Sample(
            make(*shape), make(c), make(c), make(*shape), make(c), make(c),
            make(c, low=0.5, high=2.0),
        )  # fmt: skip


def _batch_normalize_gradient(
    g: Any, gm: Any, gr: Any, a: Any, weight: Any, mean: Any, rstd: Any
) -> Any:
    shape = (1, -1, *[1] * (a.ndim - 2))
    dims = (0, *range(2, a.ndim))
    gm, gr, weight, mean, rstd = (v.reshape(shape) for v in (gm, gr, weight, mean, rstd))
    output = (a - mean) * rstd
    g_input = _standardize_gradient(g * weight, gm, gr, output, rstd, dims)
    return g_input, (g * output).sum(dims), g.sum(dims)


RECORDS = [
    layer_record("standardize", _standardize_samples, _standardize),
    layer_record("standardize_gradient", _standardize_gradient_samples, _standardize_gradient),
    layer_record("batch_normalize", _batch_normalize_samples, _batch_normalize),
    layer_record(
        "batch_normalize_gradient", _batch_normalize_gradient_samples, _batch_normalize_gradient
    ),
]
