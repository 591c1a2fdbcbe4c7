"""Records of bitwise ops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import INTEGRAL, DType, bool_, float64

from ..records import ErrorSample, OpRecord, Sample
from .arithmetic import binary, refuses, unary

_BITS = (bool_, *INTEGRAL)


def _logical(op: str, function: Any) -> OpRecord:
    def no_number(make: Any) -> Iterator[ErrorSample]:
        yield ErrorSample(Sample(make(2), 1), TypeError, "must be Tensor")

    def samples(make: Any, dtype: DType) -> Iterator[Sample]:
        for sample in binary(0, 2, 0, 2)(make, dtype):
            yield Sample(*[arg.to(INTEGRAL[-1]).to(dtype) for arg in sample.args])

    return OpRecord(op, samples, function, gradient=False, errors=no_number)


def _bitwise(op: str, function: Any) -> OpRecord:
    errors = refuses(float64, arity=2)
    return OpRecord(op, binary(), function, dtypes=_BITS, gradient=False, errors=errors)


def _shift(op: str, function: Any) -> OpRecord:
    errors = refuses(float64, bool_, arity=2)
    samples = binary(None, None, 0, 7, numbers=(1,), reflected=True)
    return OpRecord(op, samples, function, dtypes=INTEGRAL, gradient=False, errors=errors)


RECORDS = [
    _logical("logical_and", np.logical_and),
    OpRecord("logical_not", unary(0, 2), np.logical_not, gradient=False),
    _logical("logical_or", np.logical_or),
    _logical("logical_xor", np.logical_xor),
    _bitwise("bitwise_and", np.bitwise_and),
    OpRecord(
        "bitwise_not",
        unary(),
        np.invert,
        dtypes=_BITS,
        gradient=False,
        errors=refuses(float64),
    ),
    _bitwise("bitwise_or", np.bitwise_or),
    _bitwise("bitwise_xor", np.bitwise_xor),
    _shift("bitwise_left_shift", np.left_shift),
    _shift("bitwise_right_shift", np.right_shift),
]
