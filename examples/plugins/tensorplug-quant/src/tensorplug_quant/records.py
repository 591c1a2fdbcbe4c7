"""What the conformance suite knows of the ops: samples, and a reference in NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.plugin import FLOATS, DType, dtype_named
from tensorplug.testing import ErrorSample, OpRecord, Sample

INT8 = dtype_named("int8")


def _weight(make: Any, *shape: int) -> Any:
    return make(*shape, dtype=INT8, low=-9, high=9)


def linear_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    """Yield calls: vectors, matrices, batches, nothing at all, with and without bias."""
    for shape in ((4,), (3, 4), (2, 3, 4), (0, 4)):
        yield Sample(make(*shape), _weight(make, 5, 4), make(5), make(5))
    yield Sample(make(3, 4), _weight(make, 5, 4), make(5))
    yield Sample(make(3, 0), _weight(make, 5, 0), make(5), make(5))
    yield Sample(make(3, 4), _weight(make, 0, 4), make(0))


def matmul_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    """Yield calls, also with more columns than the kernel takes at once, stored either way."""
    for shape in ((4,), (3, 4), (2, 3, 4), (0, 4)):
        yield Sample(make(*shape), _weight(make, 4, 5))
    yield Sample(make(3, 4), _weight(make, 5, 4).t())
    yield Sample(make(3, 0), _weight(make, 0, 5))


def errors(make: Any) -> Iterator[ErrorSample]:
    """Yield calls that must raise."""
    weight, scale = _weight(make, 5, 4), make(5)
    for error, message, args in (
        (TypeError, "expected an int8 weight", (make(3, 4), make(5, 4), scale)),
        (TypeError, "input of floating point", (_weight(make, 3, 4), weight, scale)),
        (TypeError, "scale of the input's dtype", (make(3, 4), weight, _weight(make, 5))),
        (ValueError, r"weight \(out_features, in_features\)", (make(4), _weight(make, 4), scale)),
        (ValueError, r"expected an input \(\.\.\., 4\)", (make(3, 5), weight, scale)),
        (ValueError, r"expected an input \(\.\.\., 4\)", (make(), weight, scale)),
        (ValueError, r"scale of shape \[5\]", (make(3, 4), weight, make(4))),
        (ValueError, r"bias of shape \[5\]", (make(3, 4), weight, scale, make(1))),
    ):
        yield ErrorSample(Sample(*args), error, message)


def linear_reference(input: Any, weight: Any, scale: Any, bias: Any = None) -> Any:
    """Return what is expected, from NumPy arrays."""
    result = (input @ weight.T.astype(input.dtype)) * scale
    return result if bias is None else result + bias


def matmul_reference(input: Any, weight: Any) -> Any:
    """Return what is expected, from NumPy arrays."""
    return np.matmul(input, weight.astype(input.dtype))


# The product is rounded to the dtype before the scale and the bias come to it.
ROUNDED = {"float16": 0.1, "bfloat16": 0.8}

RECORDS = [
    OpRecord(
        "quant.linear_int8",
        linear_samples,
        reference=linear_reference,
        dtypes=FLOATS,
        errors=errors,
        atol=ROUNDED,
    ),
    OpRecord("quant._matmul_int8", matmul_samples, reference=matmul_reference, dtypes=FLOATS),
]
