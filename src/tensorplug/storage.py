"""Storages, the memory behind tensors: ``UntypedStorage``, ``TypedStorage`` and the old typed classes."""

from __future__ import annotations

from tensorplug.core.device import dtypes
from tensorplug.core.tensor.storages import UntypedStorage, from_file
from tensorplug.core.tensor.typed_storages import TypedStorage, typed_class

__all__ = [
    "BFloat16Storage",
    "BoolStorage",
    "ByteStorage",
    "CharStorage",
    "ComplexDoubleStorage",
    "ComplexFloatStorage",
    "DoubleStorage",
    "FloatStorage",
    "HalfStorage",
    "IntStorage",
    "LongStorage",
    "ShortStorage",
    "TypedStorage",
    "UntypedStorage",
    "from_file",
]

BFloat16Storage = typed_class(dtypes.bfloat16)
BoolStorage = typed_class(dtypes.bool_)
ByteStorage = typed_class(dtypes.uint8)
CharStorage = typed_class(dtypes.int8)
ComplexDoubleStorage = typed_class(dtypes.complex128)
ComplexFloatStorage = typed_class(dtypes.complex64)
DoubleStorage = typed_class(dtypes.float64)
FloatStorage = typed_class(dtypes.float32)
HalfStorage = typed_class(dtypes.float16)
IntStorage = typed_class(dtypes.int32)
LongStorage = typed_class(dtypes.int64)
ShortStorage = typed_class(dtypes.int16)


def _dtype_to_storage_type_map() -> dict[dtypes.DType, str]:  # pyright: ignore[reportUnusedFunction]
    """Return the names of the typed classes by dtype."""
    names = [name for name in __all__ if name.endswith("Storage")]
    return {globals()[name].dtype: name for name in names if hasattr(globals()[name], "dtype")}
