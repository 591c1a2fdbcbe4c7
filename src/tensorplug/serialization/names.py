"""Torch's names for dtypes, storages and the functions that rebuild tensors."""

from __future__ import annotations

from tensorplug.core.device.dtypes import DType, dtype_named

#: Torch's class of storage for each dtype that has one; of the others bytes are saved.
STORAGES: dict[str, DType] = {
    name: dtype_named(dtype)
    for name, dtype in {
        "FloatStorage": "float32",
        "DoubleStorage": "float64",
        "HalfStorage": "float16",
        "BFloat16Storage": "bfloat16",
        "ByteStorage": "uint8",
        "CharStorage": "int8",
        "ShortStorage": "int16",
        "IntStorage": "int32",
        "LongStorage": "int64",
        "BoolStorage": "bool",
        "ComplexFloatStorage": "complex64",
        "ComplexDoubleStorage": "complex128",
    }.items()
}
STORAGE_OF: dict[DType, str] = {dtype: name for name, dtype in STORAGES.items()}


class Global:
    """A name in a module, written into a file without the module being imported."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name

    def __call__(self) -> None:
        """Do nothing: pickle asks only whether a name can be called."""


REBUILD_TENSOR = Global("torch._utils", "_rebuild_tensor_v2")
REBUILD_PARAMETER_WITH_STATE = Global("torch._utils", "_rebuild_parameter_with_state")
REBUILD_WITH_ATTRIBUTES = Global("torch._tensor", "_rebuild_from_type_v2")
TENSOR = Global("torch", "Tensor")
REBUILD_BYTES = Global("torch._utils", "_rebuild_tensor_v3")
REBUILD_META = Global("torch._utils", "_rebuild_meta_tensor_no_storage")
REBUILD_SPARSE = Global("torch._utils", "_rebuild_sparse_tensor")
REBUILD_WRAPPER = Global("torch._utils", "_rebuild_wrapper_subclass")
LAYOUT = Global("torch.serialization", "_get_layout")
REBUILD_PARAMETER = Global("torch._utils", "_rebuild_parameter")
BYTES = Global("torch.storage", "UntypedStorage")
SIZE = Global("torch", "Size")
DEVICE = Global("torch", "device")
GENERATOR = Global("torch._C", "Generator")
