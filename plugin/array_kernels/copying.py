"""Kernels that copy or convert."""

from __future__ import annotations

from typing import Any

from tensorplug.core.device.dtypes import FLOAT8, DType, float8_e4m3fn, float8_e8m0fnu

from ..tables import KernelTable
from .namespace import ArrayNamespace


def _in_range(xp: Any, input: Any, dtype: DType) -> Any:
    """Return numbers that a conversion to eight bits then rounds as torch does."""
    if dtype is float8_e4m3fn:  # has no infinity: what is beyond it is its largest number
        return xp.clip(input.astype(xp.float32), -448, 448)
    if dtype is float8_e8m0fnu:  # an exponent alone, without a sign
        return xp.maximum(abs(input.astype(xp.float32)), xp.float32(2.0**-127))
    return input


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    xp = namespace.xp
    native = namespace.native

    @table.kernel()
    def cast(input: Any, dtype: DType) -> Any:
        if input.dtype.kind == "c" and not dtype.is_complex and dtype.name != "bool":
            input = input.real
        if 0 in input.strides and input.size > 1:
            input = xp.maximum(input, input)  # spread: in the order of memory of all pointwise ops
        if dtype in FLOAT8:
            input = _in_range(xp, input, dtype)
        return input.astype(native(dtype))

    @table.kernel()
    def clone(input: Any) -> Any:
        return xp.array(input, order="C", copy=True)

    def copy(input: Any, src: Any, out: Any = None) -> Any:
        if out is None:
            return xp.array(xp.broadcast_to(src, input.shape), dtype=input.dtype, copy=True)
        out[...] = src
        return out

    table.add("copy", copy, out=True)
