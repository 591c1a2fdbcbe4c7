"""Records of rearranged copies and grids."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import DType, int32

from ..records import OpRecord, Sample
from .indexing.indexing import positions
from .shape import calls, wrong


def _flip(a: Any, *dims: Any, **options: Any) -> Any:
    given = options.get("dims", dims[0] if len(dims) == 1 and isinstance(dims[0], tuple) else dims)
    return np.flip(a, given) if a.ndim else a


def _rot90(a: Any, k: int = 1, dims: Any = (0, 1)) -> Any:
    return np.rot90(a, k, dims)


def _repeats(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 3), 2)
    yield Sample(make(2, 3), 2, 1)
    yield Sample(make(3), positions(make, [1, 0, 2]))
    yield Sample(make(2, 3), positions(make, [3, 1, 2], int32), -1)
    yield Sample(make(2, 3), positions(make, [2]), 0)
    yield Sample(make(2, 0), 3, 1)
    yield Sample(make(), 2)


def _repeat_interleave(a: Any, repeats: Any, dim: Any = None) -> Any:
    return np.repeat(a, repeats, dim)


RECORDS = [
    OpRecord(
        "flip",
        calls(
            ((3, 4), 0),
            ((3, 4), (0, 1)),
            ((2, 3, 4), -1, 0),
            ((0, 3), 1),
            ((3,), ()),
            ((2,), {"dims": (0,)}),
        ),
        _flip,
        errors=wrong(
            (RuntimeError, "appears multiple times", (2, 3), (0, 0)),
            (IndexError, "out of range", (2,), (1,)),
        ),
    ),
    OpRecord(
        "fliplr",
        calls(((2, 3),), ((0, 3),)),
        np.fliplr,
        errors=wrong((RuntimeError, ">= 2-d", (3,))),
    ),
    OpRecord(
        "flipud",
        calls(((2, 3),), ((3,),), ((2, 0),)),
        np.flipud,
        errors=wrong((RuntimeError, ">= 1-d", ())),
    ),
    OpRecord(
        "roll",
        calls(
            ((3, 4), 1),
            ((3, 4), -5, 1),
            ((3, 4), (1, 2), (0, 1)),
            ((0, 3), 1, 0),
            ((), 2),
            ((3,), 3, 0),
            ((3, 4), (1, -5), (0, 1)),
            ((2, 3, 2), (-1, 2), (1, 1)),
        ),
        np.roll,
        errors=wrong(
            (RuntimeError, "must align", (3, 4), (1, 2)), (IndexError, "out of range", (3,), 1, 1)
        ),
    ),
    OpRecord(
        "rot90",
        calls(
            ((2, 3),),
            ((0, 3),),
            ((2, 3), 2),
            ((2, 3, 4), -1, (1, 2)),
            ((2, 3), 4),
            ((2, 3), 3, (1, 0)),
        ),
        _rot90,
        errors=wrong(
            (RuntimeError, "to be different", (2, 3), 1, (0, 0)),
            (RuntimeError, "total dims >= 2", (3,)),
        ),
    ),
    OpRecord(
        "repeat",
        calls(
            ((2, 3), 2, 1), ((3,), (2, 2)), ((), (2,)), ((2,), 0), ((0, 2), 3, 2), ((2, 3), 1, 1)
        ),
        lambda a, *n: np.tile(a, n[0] if len(n) == 1 else n),
        errors=wrong(
            (RuntimeError, "can not be smaller", (2, 3), 2),
            (RuntimeError, "negative dimension", (2,), -1),
        ),
        torch="Tensor.repeat",
    ),
    OpRecord(
        "tile", calls(((2, 3), (2,)), ((0, 3), (2, 1)), ((3,), (2, 1)), ((), (2, 2))), np.tile
    ),
    OpRecord(
        "repeat_interleave",
        _repeats,
        _repeat_interleave,
        errors=wrong(
            (RuntimeError, "non-negative", (3,), -1), (TypeError, "an int or a tensor", (3,), 1.5)
        ),
        skips={"meta": "how often is data"},
    ),
]
