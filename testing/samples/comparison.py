"""Records of comparisons, logical and bitwise ops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import (
    ALL_DTYPES,
    COMPLEXES,
    INTEGRAL,
    DType,
    bool_,
    float32,
    float64,
)

from ..records import ErrorSample, OpRecord, Sample
from .arithmetic import ORDERED, Errors, Samples, binary, mismatched, refuses, unary


def _close(high: float) -> Samples:
    """Return samples of few different elements, so that many are equal."""

    def samples(make: Any, dtype: DType) -> Iterator[Sample]:
        for sample in binary(0, high, 0, high, numbers=() if dtype is bool_ else (1, 2))(
            make, dtype
        ):
            yield Sample(*[round_(arg) for arg in sample.args])

    def round_(value: Any) -> Any:
        return value.to(INTEGRAL[-1]).to(value.dtype) if hasattr(value, "dtype") else value

    return samples


def _comparison(op: str, function: Any, dtypes: tuple[DType, ...]) -> OpRecord:
    errors: Errors = mismatched if dtypes is ALL_DTYPES else refuses(COMPLEXES[1], arity=2)
    return OpRecord(op, _close(3), function, dtypes=dtypes, gradient=False, errors=errors)


def _infinite_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield from unary()(make, dtype)
    if dtype.category >= float64.category:
        yield Sample(make(4) / make(4, low=0, high=0.1).abs().floor(), label="inf")
        yield Sample((make(4) * 0) / 0, label="nan")


def _isclose_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    same = make(5)
    yield Sample(same, same.clone())
    yield Sample(make(3, 1), make(4), 0.5, 1.0)
    yield Sample(make(), make(), rtol=0.0, atol=0.0)
    yield Sample(make(0), make(0), equal_nan=True)


def _isclose(
    a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Any:
    # In the precision of the op, half precision may decide otherwise at the very limit.
    return np.isclose(a, b, rtol, atol, equal_nan)


def _isclose_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2), make(2, dtype=float32)), RuntimeError, "did not match")
    yield ErrorSample(
        Sample(make(2), make(2), rtol=-1.0), RuntimeError, "must be greater than or equal to zero"
    )


def _same_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    same = make(2, 3)
    yield Sample(same, same.clone())
    yield Sample(make(7), make(7))
    yield Sample(make(0), make(0))
    yield Sample(make(), make())


RECORDS = [
    _comparison("eq", np.equal, ALL_DTYPES),
    _comparison("ge", np.greater_equal, ORDERED),
    _comparison("gt", np.greater, ORDERED),
    _comparison("le", np.less_equal, ORDERED),
    _comparison("lt", np.less, ORDERED),
    _comparison("ne", np.not_equal, ALL_DTYPES),
    OpRecord("isclose", _isclose_samples, _isclose, gradient=False, errors=_isclose_errors),
    OpRecord(
        "allclose",
        _same_samples,
        np.allclose,
        gradient=False,
        skips={"meta": "the result is a Python bool"},
    ),
    OpRecord(
        "equal",
        _same_samples,
        np.array_equal,
        gradient=False,
        skips={"meta": "the result is a Python bool"},
    ),
    OpRecord(
        "is_within",
        lambda make, dtype: [
            Sample(make(*shape, low=0.1, high=3.0), *bounds)
            for shape in ((40,), (2, 3), (), (0,))
            for bounds in ((0.0, 3.0), (0.0, 0.5), (1.0, 4.0))
        ],
        lambda a, low, high: bool(((a >= low) & (a <= high)).all()),
        dtypes=ORDERED,
        gradient=False,
        torch="",
        skips={"meta": "the result is a Python bool"},
    ),
    OpRecord("isfinite", _infinite_samples, np.isfinite, gradient=False),
    OpRecord("isinf", _infinite_samples, np.isinf, gradient=False),
    OpRecord("isnan", _infinite_samples, np.isnan, gradient=False),
    OpRecord(
        "isneginf",
        _infinite_samples,
        lambda a: np.asarray(a == -np.inf),
        dtypes=ORDERED,
        gradient=False,
        errors=refuses(COMPLEXES[1], match="complex"),
    ),
    OpRecord(
        "isposinf",
        _infinite_samples,
        lambda a: np.asarray(a == np.inf),
        dtypes=ORDERED,
        gradient=False,
        errors=refuses(COMPLEXES[1], match="complex"),
    ),
    OpRecord("isreal", _infinite_samples, np.isreal, gradient=False),
]
