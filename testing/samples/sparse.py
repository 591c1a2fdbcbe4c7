"""Records of the products with sparse matrices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import COMPLEXES, FLOATS, DType

from ..records import OpRecord, Sample
from .indexing.indexing import positions


def _coo_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    rows, columns = positions(make, [0, 2, 2, 0]), positions(make, [1, 0, 3, 1])  # one place twice
    yield Sample(rows, columns, make(4), make(4, 3), 3)
    yield Sample(rows, columns, make(4), make(4, 0), 3)
    none = positions(make, [])
    yield Sample(none, none, make(0), make(4, 2), 2)


def _coo(rows: Any, columns: Any, values: Any, other: Any, size: int) -> Any:
    dense = np.zeros((size, len(other)), np.result_type(values, other))
    np.add.at(dense, (rows, columns), values)
    return dense @ other


def _csr_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    starts, columns = positions(make, [0, 2, 2, 4]), positions(make, [1, 1, 0, 3])
    yield Sample(starts, columns, make(4), make(4, 3))
    yield Sample(starts, columns, make(4), make(4, 0))
    yield Sample(positions(make, [0, 0]), positions(make, []), make(0), make(4, 2))


def _csr(starts: Any, columns: Any, values: Any, other: Any) -> Any:
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return _coo(rows, columns, values, other, len(starts) - 1)


RECORDS = [
    OpRecord("sparse.coo_matmul", _coo_samples, _coo, (*FLOATS, *COMPLEXES), torch=""),
    OpRecord("sparse.csr_matmul", _csr_samples, _csr, (*FLOATS, *COMPLEXES), torch=""),
]
