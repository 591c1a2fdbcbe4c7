"""tensorplug's dtypes, NumPy's, and the numbers that the C kernels have for them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tensorplug.plugin import ALL_DTYPES, DType, dtype_named

#: In the order of `tp_type` in c/types.h.
NUMBERED = tuple(
    map(
        dtype_named,
        (
            "float32",
            "float64",
            "int64",
            "int32",
            "int16",
            "int8",
            "uint8",
            "bool",
            "float16",
            "bfloat16",
        ),
    )
)
SINGLE_AND_DOUBLE = tuple(map(dtype_named, ("float32", "float64")))
COMPLEX = tuple(map(dtype_named, ("complex64", "complex128")))
#: All in that order: what pointwise ops know.
ELEMENTS = (*NUMBERED, *COMPLEX)
FLOATS = tuple([dtype for dtype in NUMBERED if dtype.is_floating_point])
#: The integers, but for bool.
WHOLE = tuple([dtype for dtype in NUMBERED if dtype not in (*FLOATS, dtype_named("bool"))])

NATIVES: dict[DType, np.dtype[Any]] = {
    dtype: np.dtype(ml_dtypes.bfloat16 if dtype.name == "bfloat16" else dtype.name)
    for dtype in ALL_DTYPES
}

#: Above cpu_numpy's kernels, and below what somebody wants above these.
PRIORITY = 100


def are_exact(*numbers: Any) -> bool:
    """Return whether all are whole numbers that double has, in which the loops are given them."""
    return all([number.__class__ is int and -(2**53) <= number <= 2**53 for number in numbers])
