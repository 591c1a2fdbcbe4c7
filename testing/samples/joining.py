"""Records of joining."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.linalg

from tensorplug.core.device.dtypes import DType, float64

from ..records import ErrorSample, OpRecord, Sample
from .shape import calls, sequences, wrong


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


def _mesh(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2), make(3), indexing="ij")
    yield Sample(make(2), make(3), make(4), indexing="xy")
    yield Sample(make(2), make(), indexing="ij")
    yield Sample(make(2), make(0), indexing="ij")


def _meshgrid(*arrays: Any, indexing: Any = "ij") -> Any:
    return tuple(np.meshgrid(*arrays, indexing=indexing))


def _combinations(a: Any, r: int = 2, with_replacement: bool = False) -> Any:
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(choose(a, r))
    return np.array(rows, a.dtype).reshape(len(rows), r) if r else np.zeros(0, a.dtype)


def _cartesian(*arrays: Any) -> Any:
    if len(arrays) == 1:
        return arrays[0]
    return np.array(list(itertools.product(*arrays)), arrays[0].dtype).reshape(-1, len(arrays))


def _block_diag(*arrays: Any) -> Any:
    return np.asarray(scipy.linalg.block_diag(*arrays), arrays[0].dtype)


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
    OpRecord("meshgrid", _mesh, _meshgrid),
    OpRecord(
        "cartesian_prod",
        calls(([(2,), (3,)],), ([(2,), (2,), (2,)],), ((3,),), ([(0,), (3,)],)),
        _cartesian,
    ),
    OpRecord(
        "combinations",
        calls(((4,),), ((3,), 3), ((3,), 2, True), ((2,), 3), ((2,), 0)),
        _combinations,
        errors=wrong((RuntimeError, "1D vector", (2, 2))),
    ),
    OpRecord(
        "block_diag",
        calls(([(2, 3), (1, 1)],), ([(2,), (), (3, 1)],), ((2, 2),), ([(0, 2), (2, 1)],)),
        _block_diag,
        errors=wrong((RuntimeError, "2 or fewer", (1, 2, 3))),
    ),
    OpRecord(
        "matrices_along_diagonal",
        sequences(
            ([(2, 3), (1, 1)],), ([(2, 2)],), ([(0, 2), (2, 1), (3, 0)],), ([(2, 70), (3, 1)],)
        ),
        lambda matrices: _block_diag(*matrices),
    ),
]
