"""bfloat16 through DLPack, for array libraries that export and import other dtypes alone.

They exchange the bits as uint16, and the dtype is written into the capsule: ``DLDataType.code`` of
https://dmlc.github.io/dlpack/latest/c_api.html.
"""

from __future__ import annotations

import ctypes
from typing import Any

_UINT, _BFLOAT = 1, 4  # kDLUInt, kDLBfloat
# Where DLTensor begins in what a capsule of that name points at, and DLDataType in DLTensor.
_TENSOR = {b"dltensor": 0, b"dltensor_versioned": 32}
_DTYPE = 20
# Where DLManagedTensorVersioned has its flags, and the one of memory that must not be written to.
_FLAGS, _READ_ONLY = 24, 1

_name = ctypes.pythonapi.PyCapsule_GetName
_name.restype, _name.argtypes = ctypes.c_char_p, (ctypes.py_object,)
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)


def _code_of(capsule: Any) -> Any:
    """Return the dtype's code in a capsule, to read and to write."""
    name = _name(capsule)
    address = _pointer(capsule, name)
    assert name is not None
    assert address is not None
    return ctypes.c_uint8.from_address(address + _TENSOR[name] + _DTYPE)


def _is_writable(capsule: Any) -> bool:
    name = _name(capsule)
    if name == b"dltensor":
        return True
    address = _pointer(capsule, name)
    assert address is not None
    return not ctypes.c_uint64.from_address(address + _FLAGS).value & _READ_ONLY


def as_bfloat16(capsule: Any) -> Any:
    """Return a capsule of uint16, which nobody has taken yet, as one of bfloat16."""
    _code_of(capsule).value = _BFLOAT
    return capsule


class BitsOfBfloat16:
    """A producer that gives the bits of bfloat16 as uint16, and everything else as it is.

    Attributes
    ----------
    found : bool
        Whether what was taken is bfloat16.
    writable : bool
        Whether it may be written to: capsules without a version cannot say that it may not.
    """

    def __init__(self, producer: Any) -> None:
        self._producer = producer
        self.found = False
        self.writable = False

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self._producer.__dlpack__(**options)
        code = _code_of(capsule)
        self.writable = _is_writable(capsule)
        self.found = code.value == _BFLOAT
        if self.found:
            code.value = _UINT
        return capsule

    def __dlpack_device__(self) -> Any:
        return self._producer.__dlpack_device__()
