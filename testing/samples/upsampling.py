"""Records of resampling."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import FLOATS, DType, float32, float64

from ..records import ErrorSample, OpRecord, Sample
from ._differences import ROUGH, by_differences
from ._networks import ORDER, SUMS

_EMPTY = "neither the input nor the result may be empty"


def _samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(1, 2, 3), 5)
    yield Sample(make(1, 2, 3, 4), scale_factor=(2.0, 0.5))
    yield Sample(make(1, 1, 2, 3, 2), (3, 2, 4))
    for mode, shape in (("linear", (4,)), ("bilinear", (3, 4)), ("trilinear", (2, 3, 2))):
        for align in (False, True):
            yield Sample(make(1, 2, *shape), 5, None, mode, align)
    yield Sample(make(2, 1, 4, 6), (2, 3), mode="area")


def _interpolate(
    a: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: Any = None,
) -> Any:
    sizes = a.shape[2:]
    if size is None:
        wanted = [math.floor(n * f) for n, f in zip(sizes, scale_factor, strict=True)]
    else:
        wanted = list(size) if isinstance(size, tuple) else [size] * len(sizes)
    for dim, (n, w) in enumerate(zip(sizes, wanted, strict=True), 2):
        if mode == "nearest":
            a = a.take([i * n // w for i in range(w)], dim)
        elif mode == "area":
            a = a.reshape(*a.shape[:dim], w, n // w, *a.shape[dim + 1 :]).mean(dim + 1)
        else:
            at = np.arange(w) * (n - 1) / (w - 1) if align_corners else (np.arange(w) + 0.5) * n / w
            at = np.clip(at - (0 if align_corners else 0.5), 0, n - 1)
            low = np.floor(at).astype(int)
            rest = (at - low).reshape([-1 if d == dim else 1 for d in range(a.ndim)])
            a = a.take(low, dim) * (1 - rest) + a.take(np.minimum(low + 1, n - 1), dim) * rest
    return a


def _backward_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(1, 2, 5), (1, 2, 3), (5,), None, "nearest", None, False)
    yield Sample(make(1, 1, 6, 2), (1, 1, 3, 4), None, (2.0, 0.5), "nearest", None, False)
    for mode, shape in (("linear", (4,)), ("bilinear", (3, 4)), ("trilinear", (2, 3, 2))):
        for align in (False, True):
            wanted = (5,) * len(shape)
            yield Sample(make(1, 2, *wanted), (1, 2, *shape), wanted, None, mode, align, False)
    yield Sample(make(2, 1, 2, 3), (2, 1, 4, 6), (2, 3), None, "area", None, False)


def _backward(g: Any, input_size: Any, *options: Any) -> Any:
    return by_differences(_interpolate, 0)(g, np.zeros(input_size), *options[:-1])


def _backward_errors(make: Any) -> Iterator[ErrorSample]:
    options = (None, "linear", False, False)
    yield ErrorSample(
        Sample(make(1, 2, 5), (1, 2, 3), (4,), *options), RuntimeError, "not of images"
    )
    yield ErrorSample(
        Sample(make(1, 2, 5), (1, 2, 0), (5,), *options), RuntimeError, "not of images"
    )


RECORDS = [
    OpRecord(
        "interpolate_backward",
        _backward_samples,
        _backward,
        (float32, float64),
        errors=_backward_errors,
        atol=ROUGH,
        torch="",
        never_empty=_EMPTY,
    ),
    OpRecord(
        "interpolate",
        _samples,
        _interpolate,
        FLOATS,
        atol=SUMS,
        rtol=ORDER,
        torch="nn.functional.interpolate",
        never_empty=_EMPTY,
    ),
]
