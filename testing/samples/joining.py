"""Records of joining."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.dtypes import DType, float64

from ..records import ErrorSample, OpRecord, Sample
from .shape import sequences, wrong


def _cat_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield from sequences(
        ([(2, 3), (1, 3)],), ([(2, 3), (2, 1), (2, 0)], 1), ([(3,)],), ([(2,), (0,)], -1)
    )(make, dtype)
    yield Sample([make(2, 3), make(2, 3, dtype=float64)], 1, label="promoted")
    yield Sample([make(2, 2), make(0)], label="an empty vector beside a matrix")


def _cat(tensors: Any, dim: int = 0) -> Any:
    kept = [a for a in tensors if a.shape != (0,)] or tensors[:1]
    return np.concatenate(kept, dim)


def _not_tensors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample([]), ValueError, "non-empty")
    yield ErrorSample(Sample(make(2)), TypeError, "must be tuple of Tensors")
    yield ErrorSample(Sample([make(2), 1]), TypeError, "Tensor as element 1")
    yield ErrorSample(Sample([make(), make()]), RuntimeError, "zero-dimensional")
    yield ErrorSample(Sample([make(2, 3), make(2, 2)]), RuntimeError, "Sizes of tensors must match")
    yield ErrorSample(Sample([make(2, 3), make(2, 1, 1)]), RuntimeError, "number of dimensions")


RECORDS = [
    OpRecord("cat", _cat_samples, _cat, errors=_not_tensors),
    OpRecord(
        "stack",
        sequences(
            ([(2, 3), (2, 3)],),
            ([(2, 3), (2, 3)], 2),
            ([(2,), (2,)], -1),
            ([(), ()],),
            ([(0,), (0,)], 1),
        ),
        np.stack,
        errors=wrong((RuntimeError, "equal size", [(2,), (3,)]), (RuntimeError, "non-empty", [])),
    ),
    OpRecord(
        "hstack",
        sequences(([(2,), (3,)],), ([(2, 0), (2, 3)],), ([(2, 3), (2, 1)],), ([(), (2,)],)),
        np.hstack,
    ),
    OpRecord(
        "vstack",
        sequences(([(3,), (3,)],), ([(0, 3), (2, 3)],), ([(2, 3), (3,)],), ([(), ()],)),
        np.vstack,
    ),
    OpRecord(
        "dstack",
        sequences(([(3,), (3,)],), ([(2, 3), (2, 3)],), ([(), ()],), ([(0,), (0,)],)),
        np.dstack,
    ),
    OpRecord(
        "column_stack",
        sequences(([(3,), (3,)],), ([(2, 3), (2,)],), ([(), ()],), ([(0,), (0, 2)],)),
        lambda tensors: np.column_stack([a.reshape(1) if not a.ndim else a for a in tensors]),
        errors=wrong((RuntimeError, "Sizes of tensors must match", [(2,), (3,)])),
    ),
]
