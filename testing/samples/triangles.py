"""Records of triangles of matrices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import DType, int32

from ..records import OpRecord, Sample
from .shape import calls, wrong


def _tri_indices(function: Any) -> Any:
    return lambda row, col, offset=0: np.stack(function(row, offset, col))


def _sizes(make: Any, dtype: DType) -> Iterator[Sample]:
    for args in ((3, 3), (2, 4, 1), (4, 2, -1), (0, 3)):
        yield Sample(*args)


_TRIANGLES = calls(((3, 4),), ((4, 3), 1), ((2, 3, 3), -1), ((0, 3),), ((2, 2), 5))
_MATRIX = wrong((RuntimeError, "at least 2 dimensions", (3,)))


RECORDS = [
    OpRecord("tril", _TRIANGLES, np.tril, errors=_MATRIX),
    OpRecord("triu", _TRIANGLES, np.triu, errors=_MATRIX),
    OpRecord(
        "tril_indices", _sizes, _tri_indices(np.tril_indices), dtypes=(int32,), gradient=False
    ),
    OpRecord(
        "triu_indices", _sizes, _tri_indices(np.triu_indices), dtypes=(int32,), gradient=False
    ),
]
