"""Records of elementary functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorplug.core.dtypes import ALL_DTYPES, COMPLEXES, FLOATS, bool_

from ..records import OpRecord
from .pointwise import ORDERED, REAL, binary, floating, refuses, unary


def _record(
    op: str,
    function: Callable[[Any], Any],
    low: float | None = None,
    high: float | None = None,
    **options: Any,
) -> OpRecord:
    return OpRecord(op, unary(low, high), floating(function), dtypes=ALL_DTYPES, **options)


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
    OpRecord(
        "_relu_gradient",
        binary(),
        lambda g, y: np.where(y <= 0, 0, g),
        dtypes=FLOATS,
        torch="",
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
]
