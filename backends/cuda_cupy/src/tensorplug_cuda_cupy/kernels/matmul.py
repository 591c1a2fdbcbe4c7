"""Matrix products by cuBLAS: transposed operands as they are, halves with float32 sums, TF32 on demand."""

from __future__ import annotations

import math
import sys
from functools import cache
from typing import Any

import numpy as np

from tensorplug.plugin import COMPLEXES, FLOATS, KernelTable, broadcast_shapes

from .._cupy import cp
from ..dtypes import name_of
from ..libraries import cublas, cublaslt

# Of cudaDataType_t, cublasComputeType_t and cublasGemmAlgo_t.
_CUDA_TYPES = {
    "float32": 0,
    "float64": 1,
    "float16": 2,
    "complex64": 4,
    "complex128": 5,
    "bfloat16": 14,
}
_COMPUTE_32F, _COMPUTE_64F, _COMPUTE_32F_TF32 = 68, 70, 77
_DEFAULT_ALGORITHM = -1
_PLAIN, _TRANSPOSED = 0, 1
_INT_MAX = 2**31 - 1
#: Whose products cuBLASLt documents with a bias.
_WITH_BIAS = ("float32", "float16", "bfloat16")


def build(table: KernelTable) -> None:
    """Add the kernel to `table`, above the shared one, which is left with integers."""
    table.add("matmul", matmul, dtypes=(*FLOATS, *COMPLEXES), priority=1)


def allows_tf32() -> bool:
    """Return whether the user allows the 10 bits of TensorFloat-32 in products of float32.

    Either ``tp.backends.cuda.matmul.allow_tf32 = True`` or ``tp.set_float32_matmul_precision("high")``
    does; a module that nobody imported has not been told anything.
    """
    facade = sys.modules.get("tensorplug")
    if getattr(facade, "get_float32_matmul_precision", lambda: "highest")() != "highest":
        return True
    told = getattr(sys.modules.get("tensorplug.backends"), "cuda", None)
    return bool(told is not None and told.matmul.allow_tf32)


@cache
def _factors(dtype: str) -> tuple[Any, int, int]:
    """Return numbers 1 and 0 in host memory, which has to stay, and where they are."""
    kind = {"float16": "float32", "bfloat16": "float32"}.get(dtype, dtype)
    numbers = np.array([1, 0], kind)
    return numbers, numbers.ctypes.data, numbers.ctypes.data + numbers.itemsize


def matmul(input: Any, other: Any) -> Any:
    """Return the matrix product of floating-point arrays, as NumPy broadcasts them."""
    if other.ndim == 2 and input.ndim > 2 and input.flags.c_contiguous:
        rows = input.reshape(math.prod(input.shape[:-1]), input.shape[-1])
        return product(rows[None], other[None]).reshape(*input.shape[:-1], other.shape[1])
    a = input[None] if input.ndim == 1 else input
    b = other[:, None] if other.ndim == 1 else other
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    result = product(_flat_batch(a, batch), _flat_batch(b, batch))
    rows_ = () if input.ndim == 1 else a.shape[-2:-1]
    columns = () if other.ndim == 1 else b.shape[-1:]
    return result.reshape((*batch, *rows_, *columns))


def _flat_batch(array: Any, batch: tuple[int, ...]) -> Any:
    """Return (..., rows, columns) as (count or 1, rows, columns); 1 stands for the same matrix throughout."""
    matrix = array.shape[-2:]
    if math.prod(array.shape[:-2]) == 1:
        return array.reshape(1, *matrix)
    if array.shape[:-2] != batch:
        array = cp.broadcast_to(array, (*batch, *matrix))
    return array.reshape(math.prod(batch), *matrix)


def product(a: Any, b: Any) -> Any:
    """Return the products of (batch or 1, m, k) and (batch or 1, k, n)."""
    count = max(a.shape[0], b.shape[0]) if a.shape[0] and b.shape[0] else 0
    m, k, n = a.shape[1], a.shape[2], b.shape[2]
    if not (count and m and n and k):
        return cp.zeros((count, m, n), a.dtype)
    if max(count, m, n, k) > _INT_MAX:
        raise RuntimeError(
            f"matmul(): cuBLAS takes sizes up to {_INT_MAX}, got {a.shape} @ {b.shape}"
        )
    output = cp.empty((count, m, n), a.dtype)
    a, turned_a, step_a = _operand(a)
    b, turned_b, step_b = _operand(b)
    name = name_of(a)
    _, one, zero = _factors(name)
    kind = _CUDA_TYPES[name]
    # cuBLAS goes by columns: what it sees are the transposes, and (A B)' = B' A'.
    cublas.products(
        turned_b, turned_a, n, m, k, one,
        b.data.ptr, kind, step_b, _batch_step(b),
        a.data.ptr, kind, step_a, _batch_step(a),
        zero, output.data.ptr, kind, n, m * n, count, _compute_type(name), _DEFAULT_ALGORITHM,
    )  # fmt: skip
    return output


def product_with_bias(a: Any, b: Any, bias: Any | None, activation: str = "") -> Any | None:
    """Return (m, k) @ (k, n) + (n,), activated, in one kernel of cuBLASLt, or None where none serves."""
    name = name_of(a)
    (m, k), n = a.shape, b.shape[1]
    if (
        name not in _WITH_BIAS
        or not (m and k and n)
        or max(m, k, n) > _INT_MAX
        or (bias is not None and (bias.shape != (n,) or bias.strides[0] != bias.itemsize))
    ):
        return None
    output = cp.empty((m, n), a.dtype)
    left, turned_left, step_left = _operand(a[None])
    right, turned_right, step_right = _operand(b[None])
    # The library goes by columns, in which the result has n rows, and the bias goes along them.
    served = cublaslt.product_with_bias(
        _CUDA_TYPES[name],
        _compute_type(name),
        (turned_right, turned_left),
        (n, m, k),
        (step_right, step_left),
        (right.data.ptr, left.data.ptr, 0 if bias is None else bias.data.ptr, output.data.ptr),
        activation,
    )
    return output if served else None


def _compute_type(name: str) -> int:
    if name in ("float64", "complex128"):
        return _COMPUTE_64F
    if name in ("float32", "complex64") and allows_tf32():
        return _COMPUTE_32F_TF32
    return _COMPUTE_32F


def _operand(array: Any) -> tuple[Any, int, int]:
    """Return (batch, rows, columns) as cuBLAS takes it: the array, whether transposed, the leading step.

    Rows, or else columns, whose elements lie together are taken as they are; anything else is copied.
    """
    rows, columns = array.shape[1:]
    down, along = [stride // array.itemsize for stride in array.strides[1:]]
    if along == 1 or columns == 1:
        step = down if rows > 1 else columns
        if columns <= step <= _INT_MAX:
            return array, _PLAIN, step
    if down == 1 or rows == 1:
        step = along if columns > 1 else rows
        if rows <= step <= _INT_MAX:
            return array, _TRANSPOSED, step
    return cp.ascontiguousarray(array), _PLAIN, columns


def _batch_step(array: Any) -> int:
    return 0 if array.shape[0] == 1 else array.strides[0] // array.itemsize
