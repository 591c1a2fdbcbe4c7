"""Records of functions of representation and of compounds of elementary functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import special

from tensorplug.core.device.dtypes import (
    ALL_DTYPES,
    COMPLEXES,
    FLOATS,
    INTEGRAL,
    DType,
    bool_,
    finfo,
    float32,
    float64,
    int64,
    uint64,
)

from ..records import ErrorSample, OpRecord, Sample
from .arithmetic import INEXACT, ORDERED, binary, floating, refuses, unary

# The product or sum of several rounded steps.
_STEPS = {"float16": 4e-3, "bfloat16": 3e-2}


def _heaviside_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(2), make(2, dtype=float32)), RuntimeError, "different dtypes")


def _signed_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield from unary()(make, dtype)
    if dtype.is_floating_point:
        yield Sample(make(4) * 0.0, label="zeros of both signs")


def _nan_to_num_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield from unary()(make, dtype)
    yield Sample(make(4), 1.0, 2.0, -2.0)


def _frexp_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield from unary()(make, dtype)
    yield Sample(make(5, low=-1e-3, high=1e-3))


def _ldexp_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for one, other in (((5,), (5,)), ((3, 1), (4,)), ((), ()), ((0,), (1,))):
        yield Sample(make(*one), make(*other, low=0, high=4, dtype=int64))


def _logaddexp(a: Any, b: Any) -> Any:
    if a.dtype.kind == "c":
        larger = a.real >= b.real
        first, second = np.where(larger, a, b), np.where(larger, b, a)
        return first + np.log(1 + np.exp(second - first))
    return np.logaddexp(a, b)


def _angle(a: Any) -> Any:
    return np.angle(a.astype(np.float64) if a.dtype.kind in "biu" else a)


def _next_is_near(result: Any, sample: Sample) -> None:
    one, other = sample.args
    step = (result - one).abs()
    scale = one.abs().clamp_min(1e-3) * finfo(one.dtype).eps
    assert bool((step <= scale).all())
    assert bool(((step == 0) == (one == other)).all())


RECORDS = [
    OpRecord("angle", unary(), _angle),
    OpRecord(
        "copysign",
        binary(numbers=(2, -1.5), reflected=True),
        floating(np.copysign),
        dtypes=ORDERED,
        errors=refuses(COMPLEXES[1], arity=2),
    ),
    OpRecord(
        "deg2rad",
        unary(),
        floating(np.deg2rad),
        dtypes=ORDERED,
        errors=refuses(COMPLEXES[1], match="complex"),
        rtol=_STEPS,
    ),
    OpRecord(
        "frexp",
        _frexp_samples,
        np.frexp,
        dtypes=FLOATS,
        gradient=False,
        errors=refuses(int64, match="floating-point"),
    ),
    OpRecord(
        "gcd", binary(), np.gcd, dtypes=INTEGRAL, gradient=False, errors=refuses(float64, arity=2)
    ),
    OpRecord(
        "heaviside",
        binary(),
        lambda a, b: np.where(a == 0, b, (a > 0).astype(a.dtype)),
        dtypes=ORDERED,
        errors=_heaviside_errors,
    ),
    OpRecord(
        "hypot", binary(), np.hypot, dtypes=FLOATS, errors=refuses(int64, arity=2), rtol=_STEPS
    ),
    OpRecord(
        "lcm", binary(), np.lcm, dtypes=INTEGRAL, gradient=False, errors=refuses(float64, arity=2)
    ),
    OpRecord("ldexp", _ldexp_samples, lambda a, b: floating(np.multiply)(a, 2.0**b)),
    OpRecord(
        "logaddexp",
        binary(),
        _logaddexp,
        dtypes=INEXACT,
        errors=refuses(int64, arity=2),
        # A result near zero is the difference of terms up to 9.
        atol={"float16": 5e-3, "bfloat16": 5e-2, "complex64": 2e-5},
    ),
    OpRecord(
        "logaddexp2",
        binary(),
        np.logaddexp2,
        dtypes=FLOATS,
        errors=refuses(int64, COMPLEXES[1], arity=2),
        atol={"float16": 5e-3, "bfloat16": 5e-2},
    ),
    OpRecord(
        "nan_to_num",
        _nan_to_num_samples,
        lambda a, *_: a,
        dtypes=tuple(dtype for dtype in ALL_DTYPES if dtype is not uint64),
    ),
    # The next number depends on the dtype, which a reference in float64 does not see.
    OpRecord(
        "nextafter",
        binary(),
        None,
        dtypes=FLOATS,
        gradient=False,
        check=_next_is_near,
        errors=refuses(int64, arity=2),
    ),
    OpRecord("rad2deg", unary(), floating(np.rad2deg), dtypes=ORDERED, rtol=_STEPS),
    OpRecord(
        "signbit",
        _signed_samples,
        lambda a: a < 0 if a.dtype.kind in "biu" else np.signbit(a),
        dtypes=ORDERED,
        gradient=False,
        errors=refuses(COMPLEXES[1], match="complex"),
    ),
    OpRecord("sinc", unary(-3, 3), floating(np.sinc), rtol={"float32": 2e-5, "complex64": 2e-5}),
    OpRecord(
        "xlogy",
        binary(None, None, 0.2, 9, numbers=(2,), reflected=True),
        floating(special.xlogy),
        dtypes=tuple(dtype for dtype in ORDERED if dtype is not bool_),
        rtol=_STEPS,
        atol=_STEPS,
    ),
]
