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
FLOATS = tuple([dtype for dtype in NUMBERED if dtype.is_floating_point])

NATIVES: dict[DType, np.dtype[Any]] = {
    dtype: np.dtype(ml_dtypes.bfloat16 if dtype.name == "bfloat16" else dtype.name)
    for dtype in ALL_DTYPES
}

#: Above cpu_numpy's kernels, and below what somebody wants above these.
PRIORITY = 100
