"""``Tensor.float()`` and its like.

They have a class of their own, because inside of it their names stand for them rather than for Python's
types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..device import dtypes
from ..device.dtypes import DType
from ..dispatch.op_registry import handle
from .dense_members import TensorFacts

CAST = handle("cast")


def _converter(dtype: DType) -> Callable[..., Any]:
    """Return the method that converts to one dtype."""

    def convert(self: Any, memory_format: Any = None) -> Any:
        if memory_format is not None:
            return self.to(dtype, memory_format=memory_format)
        return self if self._key.dtype is dtype else CAST.call(self, dtype)

    convert.__doc__ = f"Return the tensor as {dtype!r}; itself if it is that already."
    return convert


class Conversions(TensorFacts):
    """Base of Tensor with one method per dtype."""

    __slots__ = ()

    bool = _converter(dtypes.bool_)
    byte = _converter(dtypes.uint8)
    char = _converter(dtypes.int8)
    short = _converter(dtypes.int16)
    int = _converter(dtypes.int32)
    long = _converter(dtypes.int64)
    half = _converter(dtypes.float16)
    bfloat16 = _converter(dtypes.bfloat16)
    float = _converter(dtypes.float32)
    double = _converter(dtypes.float64)
    cfloat = _converter(dtypes.complex64)
    cdouble = _converter(dtypes.complex128)
