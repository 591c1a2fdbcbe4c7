"""The exchange of tensors with other libraries, under torch's names."""

# ruff: noqa: N815  # the names are the standard's

from __future__ import annotations

import ctypes
import enum
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.ops.shorthands import to_dlpack
from tensorplug.core.tensor import creation

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


class DLDeviceType(enum.IntEnum):
    """Where the memory of a capsule lies, as the DLPack standard numbers it."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14


class _Capsule:
    """A capsule as the standard's newer form has it: an object that hands it over."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        place = pointer(self._capsule, b"dltensor") + ctypes.sizeof(ctypes.c_void_p)
        kind, index = (ctypes.c_int32 * 2).from_address(place)
        return kind, index


def from_dlpack(ext_tensor: Any) -> Tensor:
    """Return a tensor over the memory of another library's: of an object with ``__dlpack__``, or a capsule.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.utils.dlpack.from_dlpack(tp.utils.dlpack.to_dlpack(tp.ones(2)))
    tensor([1., 1.])
    """
    if type(ext_tensor).__name__ == "PyCapsule":
        ext_tensor = _Capsule(ext_tensor)
    return creation.from_dlpack(ext_tensor)
