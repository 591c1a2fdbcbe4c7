"""Records of dropout."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import FLOATS, DType, bool_

from ..records import OpRecord, Sample
from .random import philox


def _samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for p in (0.25, 0.5, 1.0):
        yield Sample(make(3, 50), p, 5, 0)
    yield Sample(make(130), 0.1, (1 << 64) - 1, (1 << 64) - 2, label="the counter wraps around")
    yield Sample(make(), 0.5, 0, 3)
    yield Sample(make(0, 3), 0.5, 0, 0)


def _dropout(a: Any, p: float, seed: int, offset: int) -> Any:
    numbers = (philox(a.shape, seed, offset) >> 8) * 2.0**-24
    kept = numbers >= np.float32(p)
    return _scaled(a, kept, p), kept


def _gradient_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(3, 5), make(3, 5, dtype=bool_), 0.25)
    yield Sample(make(), make(dtype=bool_), 0.5)
    yield Sample(make(0, 3), make(0, 3, dtype=bool_), 1.0)


def _scaled(g: Any, kept: Any, p: float) -> Any:
    return g * kept * (1 / (1 - p) if p < 1 else 0)


def _of_channels(count: int) -> Any:
    def samples(make: Any, dtype: DType) -> Iterator[Sample]:
        yield Sample(make(2, 3, *[4] * count), 0.5, False)
        yield Sample(make(*[3] * (count == 2), 3, *[4] * count), 0.0)
        yield Sample(make(0, 3, *[2] * count), 0.5, False)

    return samples


def _function_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 3), 0.5, False)
    yield Sample(make(), 0.0, True)
    yield Sample(make(0, 3), 0.5, False)


def _unchanged(a: Any, p: float, training: bool = True) -> Any:
    return a


# What these draw is compared with torch's distribution in tests/nn.
_FUNCTIONS = {
    **dict.fromkeys(("alpha_dropout", "dropout", "feature_alpha_dropout"), _function_samples),
    **{f"dropout{count}d": _of_channels(count) for count in (1, 2, 3)},
}

RECORDS = [
    *[
        OpRecord(name, samples, _unchanged, FLOATS, torch="")
        for name, samples in _FUNCTIONS.items()
    ],
    OpRecord("native_dropout", _samples, _dropout, FLOATS, torch=""),
    OpRecord("native_dropout_backward", _gradient_samples, _scaled, FLOATS, torch=""),
]
