"""The names of dtypes: ours, NumPy's, which CuPy shares, and those of the CUDA sources."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tensorplug.plugin import ALL_DTYPES, DType, dtype_named

NATIVES: dict[DType, np.dtype[Any]] = {
    dtype: np.dtype(ml_dtypes.bfloat16 if dtype.name == "bfloat16" else dtype.name)
    for dtype in ALL_DTYPES
}
DTYPES: dict[np.dtype[Any], DType] = {native: dtype for dtype, native in NATIVES.items()}

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
HALVES = (dtype_named("float16"), dtype_named("bfloat16"))
SINGLE_AND_DOUBLE = (dtype_named("float32"), dtype_named("float64"))


def name_of(array: Any) -> str:
    """Return the dtype's name of an array."""
    return DTYPES[array.dtype].name
