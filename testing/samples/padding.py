"""Records of padding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import ALL_DTYPES, FLOATS, DType

from ..records import OpRecord, Sample


def _samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 3), (1, 2))
    yield Sample(make(2, 3), (1, -1, 0, 2), "constant", 1.5)
    yield Sample(make(3), (0, 0))
    yield Sample(make(0, 3), (1, 1))
    for mode in ("reflect", "replicate", "circular"):
        yield Sample(make(2, 3, 4), (1, 2), mode)
        yield Sample(make(1, 2, 3, 4), (2, 0, 0 if mode == "circular" else -1, 1), mode)


def _constant_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 3), (1, 2))
    yield Sample(make(2, 3, 4), (1, -1, 0, 2, -2, 1), 1)
    yield Sample(make(3), (0, 0), 2)
    yield Sample(make(2, 3), (-1, -2), 1)
    yield Sample(make(0, 3), (1, 1, 2, 0), 3)


_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def _pad(a: Any, sizes: Any, mode: str = "constant", value: float = 0.0) -> Any:
    ends = [(sizes[i], sizes[i + 1]) for i in range(0, len(sizes), 2)][::-1]
    ends = [(0, 0)] * (a.ndim - len(ends)) + ends
    wide: Any = [(max(before, 0), max(after, 0)) for before, after in ends]
    options = {"constant_values": value} if mode == "constant" else {}
    made: Any = np.pad
    result = made(a, wide, _MODES[mode], **options)
    kept = [slice(max(-b, 0), n - max(-a, 0)) for n, (b, a) in zip(result.shape, ends, strict=True)]
    return result[tuple(kept)]


def _constant(a: Any, sizes: Any, value: float = 0) -> Any:
    return _pad(a, sizes, "constant", value)


RECORDS = [
    OpRecord("constant_pad_nd", _constant_samples, _constant, ALL_DTYPES),
    OpRecord("pad", _samples, _pad, FLOATS, torch="nn.functional.pad"),
]
