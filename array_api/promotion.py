"""Promotion by the standard's table, which has entries that torch's lacks, and no rule for 0-d arrays."""

from __future__ import annotations

from functools import reduce
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.device.dtypes import INTEGER, DType, int16, int32, int64, promote_types

__all__ = ["align", "promote"]

_SIGNED_OF_SIZE = {2: int16, 4: int32, 8: int64}


def promote(a: DType, b: DType) -> DType:
    """Return the dtype of an operation over arrays of two dtypes.

    Raises
    ------
    TypeError
        For uint64 with a signed integer: no integer dtype holds both.
    """
    if a.category == b.category == INTEGER and a.is_signed != b.is_signed:
        signed, unsigned = (a, b) if a.is_signed else (b, a)
        size = max(signed.itemsize, 2 * unsigned.itemsize)
        if size not in _SIGNED_OF_SIZE:
            raise TypeError(f"{a} and {b} have no common integer dtype; convert one with astype()")
        return _SIGNED_OF_SIZE[size]
    return promote_types(a, b)


def align(*operands: Any) -> list[Any]:
    """Return operands with the tensors among them converted to one dtype; numbers are left as they are."""
    found = [item.dtype for item in operands if isinstance(item, Tensor)]
    if len(found) < 2:
        return list(operands)
    common = reduce(promote, found)
    return [item.to(common) if isinstance(item, Tensor) else item for item in operands]
