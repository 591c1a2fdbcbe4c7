"""Records of embedding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import FLOATS, DType, float32, float64, int64

from ..records import OpRecord, Sample
from ._differences import ROUGH, by_differences
from ._networks import layer_record
from .indexing.gather import _ROUNDED
from .indexing.indexing import positions


def _embedding_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for shape in ((4,), (2, 2), (0,)):
        yield Sample(make(*shape, dtype=int64, low=0, high=4), make(5, 3))
    at = positions(make, [0, 2, 2, 1])
    yield Sample(at, make(4, 3), -1)  # a row that is not taken


def _bag_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    at = positions(make, [0, 2, 4, 1, 3])
    starts = positions(make, [0, 2, 2])
    for mode in ("sum", "mean", "max"):
        yield Sample(at, make(5, 3), starts, mode=mode)
        yield Sample(make(2, 3, dtype=int64, low=0, high=4), make(5, 3), mode=mode)
    yield Sample(at, make(5, 3), starts, mode="sum", per_sample_weights=make(5))
    ends = positions(make, [0, 2, 5])
    yield Sample(at, make(5, 3), ends, mode="mean", include_last_offset=True)
    yield Sample(make(0, 2, dtype=int64), make(5, 3))


def _bag(
    at: Any,
    w: Any,
    starts: Any = None,
    mode: str = "mean",
    per_sample_weights: Any = None,
    padding_idx: int | None = None,
    include_last_offset: bool = False,
) -> Any:
    if at.ndim == 2:
        bags: Any = [(row, None) for row in at]
    else:
        ends = [*starts[1:], len(at)]
        parts = [slice(a, b) for a, b in zip(starts, ends, strict=True)]
        parts = parts[: len(starts) - include_last_offset]
        factors = per_sample_weights
        bags = [(at[part], None if factors is None else factors[part]) for part in parts]
    result = np.zeros((len(bags), w.shape[1]))
    for number, (indices, factors) in enumerate(bags):
        rows = w[indices] if factors is None else w[indices] * factors[:, None]
        rows = rows[indices != padding_idx] if padding_idx is not None else rows
        if len(rows):
            result[number] = getattr(np, mode)(rows, 0)
    return result


def _bag_backward_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    at, starts = positions(make, [0, 2, 4, 1, 3, 2]), positions(make, [0, 2, 2])
    for mode in ("sum", "mean", "max"):
        yield Sample(make(3, 4), make(5, 4), at, starts, False, mode, None, False, None)
        yield Sample(make(2, 4), make(5, 4), at, starts, False, mode, None, True, 2)
        rows = at.reshape(2, 3)
        yield Sample(make(2, 4), make(5, 4), rows, None, False, mode, None, False, None)
    yield Sample(make(3, 4), make(5, 4), at, starts, False, "sum", make(6), False, 4)
    none = positions(make, []).reshape(0, 2)
    yield Sample(make(0, 4), make(5, 4), none, None, False, "sum", None, False, None)


def _bag_backward(
    g: Any,
    w: Any,
    at: Any,
    starts: Any,
    _: bool,
    mode: str,
    factors: Any,
    last: bool,
    padding: int | None,
) -> Any:
    of_table = by_differences(
        lambda w: _bag(at, w, starts, mode, factors, padding, last) if g.size else g, 0
    )(g, w)
    if factors is None:
        return of_table, np.zeros(0)
    return of_table, by_differences(lambda f: _bag(at, w, starts, mode, f, padding, last), 0)(
        g, factors
    )


def _classes_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 3, low=0, high=4))
    yield Sample(make(4, low=0, high=4), 6)
    yield Sample(make(0, 2, low=0, high=4), 3)


def _classes(a: Any, count: int = -1) -> Any:
    return np.eye(int(a.max()) + 1 if count < 0 else count, dtype=np.int64)[a.astype(np.int64)]


def _rows_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    at = positions(make, [0, 2, 2, 1])
    for padding, by_frequency in ((-1, False), (2, False), (-1, True), (0, True)):
        yield Sample(make(4, 3), at, 5, padding, by_frequency)
    yield Sample(make(2, 2, 3), at.reshape(2, 2), 3, -1, False)
    yield Sample(make(0, 3), positions(make, []), 2, -1, False)


def _rows(g: Any, indices: Any, rows: int, padding: int, by_frequency: bool) -> Any:
    flat = indices.reshape(-1)
    result = np.zeros((rows, g.shape[-1]))
    for row, source in zip(flat, g.reshape(-1, g.shape[-1]), strict=True):
        if row != padding:
            result[row] += source / (np.count_nonzero(flat == row) if by_frequency else 1)
    return result


RECORDS = [
    layer_record(
        "embedding",
        _embedding_samples,
        lambda i, w, *_, **__: w[i],
        torch="nn.functional.embedding",
    ),
    layer_record("embedding_bag", _bag_samples, _bag, torch="nn.functional.embedding_bag"),
    OpRecord(
        "embedding_bag_backward",
        _bag_backward_samples,
        _bag_backward,
        (float32, float64),
        atol=ROUGH,
        torch="",
    ),
    OpRecord(
        "one_hot",
        _classes_samples,
        _classes,
        (int64,),
        gradient=False,
        torch="nn.functional.one_hot",
        skips={"meta": "how many classes there are the data says"},
    ),
    OpRecord(
        "embedding_dense_backward",
        _rows_samples,
        _rows,
        FLOATS,
        rtol=_ROUNDED,
        atol=_ROUNDED,
        torch="",
    ),
]
