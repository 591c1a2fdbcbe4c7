"""The dtypes that MLX's arrays can have on a GPU, by what kernels do with them."""

from __future__ import annotations

from tensorplug.plugin import INTEGRAL, dtype_named

FLOAT16, BFLOAT16, FLOAT32 = map(dtype_named, ("float16", "bfloat16", "float32"))
BOOL, UINT8, INT64, COMPLEX = map(dtype_named, ("bool", "uint8", "int64", "complex64"))
HALVES = (FLOAT16, BFLOAT16)
FLOATS = (*HALVES, FLOAT32)
INTEGERS = tuple(INTEGRAL)
REALS = (*INTEGERS, *FLOATS)
#: All: there is no float64 on Apple's GPUs, and so no complex128.
DTYPES = (BOOL, *REALS, COMPLEX)
