"""Records of elementary functions and rounding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import (
    ALL_DTYPES,
    COMPLEXES,
    FLOATS,
    DType,
    bool_,
    float64,
    int64,
)

from ..records import OpRecord, Sample
from .arithmetic import ORDERED, REAL, binary, floating, refuses, unary


def _record(
    op: str,
    function: Callable[[Any], Any],
    low: float | None = None,
    high: float | None = None,
    **options: Any,
) -> OpRecord:
    return OpRecord(op, unary(low, high), floating(function), dtypes=ALL_DTYPES, **options)


def _gradient(op: str, function: Any, samples: Any, others: tuple[DType, ...] = ()) -> OpRecord:
    """Return the record of an op of a gradient and a result."""

    def reference(g: Any, y: Any) -> Any:
        return function(g, np.conj(y)).astype(np.result_type(g, y))

    return OpRecord(op, samples, reference, dtypes=(*FLOATS, *others), torch="")


# --- rounding ---------------------------------------------------------------------------------
def _round_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield from unary()(make, dtype)
    if dtype is float64:
        yield Sample(make(5), decimals=2)
        yield Sample(make(5, low=-900, high=900), decimals=-2)


def _whole(function: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda a: function(a).astype(a.dtype)


RECORDS = [
    _record("acos", np.arccos, -0.9, 0.9),
    _record("acosh", np.arccosh, 1.1, 9),
    _record("asin", np.arcsin, -0.9, 0.9),
    _record("asinh", np.arcsinh),
    _record("atan", np.arctan),
    OpRecord(
        "atan2",
        binary(numbers=(2,), reflected=True),
        floating(np.arctan2),
        dtypes=ORDERED,
        errors=refuses(COMPLEXES[1], arity=2),
    ),
    _record("atanh", np.arctanh, -0.9, 0.9),
    _record("cos", np.cos),
    _record("cosh", np.cosh),
    _record("exp", np.exp),
    _record("exp2", np.exp2),
    _record("expm1", np.expm1),
    _record("log", np.log, 0.2, 9),
    _record("log10", np.log10, 0.2, 9),
    _record("log1p", np.log1p, -0.8, 9),
    _record("log2", np.log2, 0.2, 9),
    _gradient("relu_backward", lambda g, y: np.where(y <= 0, 0, g), binary()),
    _gradient(
        "sigmoid_backward",
        lambda g, y: g * (y * (1 - y)),
        binary(other_low=0.05, other_high=0.95),
        COMPLEXES,
    ),
    # Near 1 the difference cancels, by which half precision is off if each step is rounded.
    _gradient(
        "tanh_backward",
        lambda g, y: g * (1 - y * y),
        binary(other_low=-0.6, other_high=0.6),
        COMPLEXES,
    ),
    OpRecord(
        "relu",
        unary(),
        lambda a: np.maximum(a, 0),
        dtypes=REAL,
        errors=refuses(bool_, COMPLEXES[1]),
    ),
    _record("rsqrt", lambda a: 1 / np.sqrt(a), 0.3, 9),
    _record("sigmoid", lambda a: 1 / (1 + np.exp(-a))),
    _record("sin", np.sin),
    _record("sinh", np.sinh),
    _record("sqrt", np.sqrt, 0.2, 9),
    _record("tan", np.tan, -1.4, 1.4),
    _record("tanh", np.tanh),
    OpRecord("ceil", unary(), _whole(np.ceil), dtypes=REAL, errors=refuses(bool_, COMPLEXES[1])),
    OpRecord("floor", unary(), _whole(np.floor), dtypes=REAL, errors=refuses(bool_)),
    OpRecord("frac", unary(), lambda a: a - np.trunc(a), dtypes=FLOATS, errors=refuses(int64)),
    OpRecord("rint", unary(), _whole(np.rint), dtypes=REAL, torch="round"),
    OpRecord(
        "round",
        _round_samples,
        lambda a, decimals=0: np.round(a, decimals).astype(a.dtype),
        dtypes=REAL,
        errors=refuses(COMPLEXES[1]),
    ),
    OpRecord("trunc", unary(), _whole(np.trunc), dtypes=REAL, errors=refuses(bool_)),
]
