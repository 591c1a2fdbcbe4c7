"""Records of splitting."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..records import OpRecord
from .shape import calls, wrong


def _unbind(a: Any, dim: int = 0) -> Any:
    return tuple(np.moveaxis(a, dim, 0))


def _sizes(a: Any, sizes: Any, dim: int = 0) -> Any:
    return tuple(np.split(a, np.cumsum(sizes)[:-1], dim))


def _split(a: Any, size: Any, dim: int = 0) -> Any:
    if not isinstance(size, int):
        return _sizes(a, size, dim)
    length = a.shape[dim]
    return tuple(np.split(a, list(range(size, length, size)), dim)) if length else (a,)


def _chunk(a: Any, chunks: int, dim: int = 0) -> Any:
    size = -(-a.shape[dim] // chunks)
    return _split(a, size, dim) if size else (a,) * chunks


def _tensor_split(a: Any, given: Any, dim: int = 0) -> Any:
    return tuple(np.array_split(a, given, dim))


_REFUSED = (RuntimeError, "at least a 1-dimensional", ())

RECORDS = [
    OpRecord(
        "unbind",
        calls(((3, 2),), ((3, 2), -1), ((2, 0),), ((3,),)),
        _unbind,
        errors=wrong((IndexError, "no dimensions", ()), (IndexError, "out of range", (2,), 1)),
    ),
    OpRecord(
        "split_with_sizes",
        calls(((5, 2), [2, 3]), ((2, 4), [0, 1, 3], -1), ((0, 2), [0])),
        _sizes,
        errors=wrong((RuntimeError, "sum exactly to 5", (5,), [2, 2]), (*_REFUSED, [1])),
    ),
    OpRecord(
        "split",
        calls(((5, 2), 2), ((5, 2), [4, 1]), ((2, 6), 3, 1), ((0, 2), 2), ((3,), 5)),
        _split,
        errors=wrong(
            (RuntimeError, "non-negative", (3,), -1),
            (RuntimeError, "can only be 0", (3,), 0),
            (*_REFUSED, 1),
        ),
    ),
    OpRecord(
        "chunk",
        calls(((5, 2), 2), ((2, 4), 3, -1), ((3,), 7), ((0, 2), 2)),
        _chunk,
        errors=wrong((RuntimeError, "greater than 0", (3,), 0), (*_REFUSED, 1)),
    ),
    OpRecord(
        "tensor_split",
        calls(((5, 2), 3), ((5, 2), (1, 3)), ((2, 5), (3, 1, 9), 1), ((3,), 5), ((4,), (-1,))),
        _tensor_split,
        errors=wrong((RuntimeError, "larger than 0", (3,), 0)),
    ),
    OpRecord(
        "hsplit",
        calls(((4,), 2), ((2, 4), 2), ((2, 5), (1, 3)), ((0, 4), 2)),
        lambda a, n: tuple(np.hsplit(a, n)),
        errors=wrong((RuntimeError, "not divisible", (2, 3), 2)),
    ),
    OpRecord(
        "vsplit",
        calls(((4, 2), 2), ((5, 2), (1, 3)), ((4, 0), 2)),
        lambda a, n: tuple(np.vsplit(a, n)),
        errors=wrong((RuntimeError, "at least 2 dimension", (4,), 2)),
    ),
    OpRecord(
        "dsplit",
        calls(((1, 2, 4), 2), ((1, 2, 5), (1, 3)), ((0, 2, 4), 2)),
        lambda a, n: tuple(np.dsplit(a, n)),
        errors=wrong((RuntimeError, "at least 3 dimension", (4, 2), 2)),
    ),
]
