"""The runtime of device type "cpu": NumPy arrays."""

from __future__ import annotations

import ctypes
import functools
import operator
from contextlib import AbstractContextManager
from typing import Any

import ml_dtypes
import numpy as np

from tensorplug.plugin import (
    ALL_DTYPES,
    FLOAT8,
    BitsOfBfloat16,
    DeviceRuntime,
    DType,
    Number,
    Shape,
    SharedMemory,
    as_bfloat16,
    complex32,
    contiguous_strides,
    wrap_integer,
)

from .numpy_warnings import silenced

NATIVES: dict[DType, np.dtype[Any]] = {
    dtype: np.dtype(getattr(ml_dtypes, dtype.name, dtype.name)) for dtype in (*ALL_DTYPES, *FLOAT8)
}
NATIVES[complex32] = np.dtype([("re", "f2"), ("im", "f2")])  # NumPy has no such numbers
_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_DTYPES = {native: dtype for dtype, native in NATIVES.items()}


def pairs_of_halves(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return numbers as pairs of halves, complex32."""
    result = np.empty_like(array, NATIVES[complex32])
    with silenced():
        result["re"], result["im"] = array.real, array.imag
    return result


def _shared_memory(array: np.ndarray[Any, Any]) -> SharedMemory | None:
    """Return the memory that an array shows, if it is shared."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    return base if isinstance(base, SharedMemory) else None


_pointer_at = ctypes.c_void_p.from_address
_HEADER = object.__basicsize__


def address(array: np.ndarray[Any, Any]) -> int:
    """Return where the first element is.

    ``array.ctypes.data`` makes three objects, in a microsecond. This reads the member that it comes from, the
    first behind the header of an object in NumPy's C API (``PyArrayObject_fields``, part of its ABI).
    """
    return _pointer_at(id(array) + _HEADER).value or 0


@functools.lru_cache(4096)
def _in_elements(strides: Shape, itemsize: int) -> Shape:
    """Return strides, given in bytes, in elements."""
    return tuple([stride // itemsize for stride in strides])


def owner_of(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the array whose memory `array` shows."""
    owner = array
    base: Any = array.base
    while base is not None:
        if isinstance(base, np.ndarray):
            owner = base
        base = getattr(base, "base", None)  # NumPy's as_strided puts an object in between
    return owner


class _Memory:
    """The memory of an array, to be written to."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array
        interface = array.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}


class NumpyRuntime(DeviceRuntime):
    """Host memory, managed by NumPy."""

    type = "cpu"
    array_type = np.ndarray
    dtypes = tuple(NATIVES)
    capabilities = frozenset(
        {
            "float64",
            "float16",
            "bfloat16",
            "complex",
            "views",
            "in_place",
            "dlpack",
            "host_memory",
        }
    )

    def dtype(self, array: np.ndarray[Any, Any]) -> DType:
        """Return the dtype of `array`."""
        return _DTYPES[array.dtype]

    def strides(self, array: np.ndarray[Any, Any]) -> Shape:
        """Return the strides of `array` in elements."""
        if not array.size:  # NumPy gives them strides that say nothing
            return contiguous_strides(array.shape)
        return _in_elements(array.strides, array.itemsize)

    # Asked for each view: without a Python frame.
    is_contiguous = staticmethod(operator.attrgetter("flags.c_contiguous"))  # type: ignore[assignment]

    def is_at_start(self, array: np.ndarray[Any, Any]) -> bool:
        """Return whether the array is the first part of its owner's memory, row by row."""
        if not array.flags.c_contiguous:
            return False
        base = array.base
        if base is None:
            return True
        # To ask for addresses takes microseconds, and who shows as many bytes without gaps shows all.
        if type(base) is np.ndarray and base.base is None and base.nbytes == array.nbytes:
            return True
        return not self.storage_offset(array)

    def storage_offset(self, array: np.ndarray[Any, Any]) -> int:
        """Return how many elements lie between the owner's first element and this array's."""
        owner = owner_of(array)
        if owner is array:
            return 0
        return (address(array) - address(owner)) // (array.itemsize or 1)

    def storage_nbytes(self, array: np.ndarray[Any, Any]) -> int:
        """Return how many bytes the owner of the memory has."""
        owner = owner_of(array)
        if owner.flags.c_contiguous or not owner.size:
            return owner.nbytes
        # In any order of dimensions, and with gaps if it came from elsewhere.
        steps = zip(owner.shape, owner.strides, strict=True)
        return sum([(n - 1) * step for n, step in steps]) + owner.itemsize

    def data_pointer(self, array: np.ndarray[Any, Any]) -> int:
        """Return the address of the first element."""
        return address(array)

    def as_array(self, value: Any) -> np.ndarray[Any, Any]:
        """Return a NumPy scalar as a 0-d array."""
        return np.asarray(value)

    def empty(self, shape: Shape, dtype: DType, index: int) -> np.ndarray[Any, Any]:
        """Return a new array with arbitrary contents."""
        return np.empty(shape, NATIVES[dtype])

    def scalar(self, value: Number, dtype: DType, index: int) -> np.ndarray[Any, Any]:
        """Return a 0-d array; integers wrap around as in C."""
        native = NATIVES[dtype]
        with np.errstate(all="ignore"):
            array = np.asarray(wrap_integer(value, dtype))
            array = pairs_of_halves(array) if dtype is complex32 else array.astype(native)
        array.flags.writeable = False
        return array

    def copy_into(self, target: np.ndarray[Any, Any], source: np.ndarray[Any, Any]) -> None:
        """Copy `source` into `target`."""
        target[...] = source

    def from_host(
        self, array: np.ndarray[Any, Any], dtype: DType, index: int
    ) -> np.ndarray[Any, Any]:
        """Return a copy of a host array."""
        return np.array(array, dtype=NATIVES[dtype], order="C", copy=True)

    def to_host(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the array itself: it is on the host."""
        return array

    def wrap_host(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the array itself."""
        return array.view(np.ndarray)

    def quiet(self) -> AbstractContextManager[Any]:
        """Mute NumPy's floating-point warnings."""
        return silenced()

    def set_num_threads(self, number: int) -> None:
        """Limit the threads of the BLAS that NumPy and SciPy call."""
        from threadpoolctl import threadpool_limits

        threadpool_limits(number)

    def share(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
        """Return a copy in memory without a name that other processes can map."""
        if _shared_memory(array) is not None:
            return array
        if not SharedMemory.SUPPORTED:
            return None
        layout = np.empty_like(array, subok=False)  # dense, and in the same order
        memory = SharedMemory.of_size(array.nbytes)
        shared = np.ndarray(array.shape, array.dtype, memory, 0, layout.strides)
        shared[...] = array
        return shared

    def shared_handle(self, array: np.ndarray[Any, Any]) -> Any | None:
        """Return the memory, and how the array lies in it."""
        memory = _shared_memory(array)
        if memory is None:
            return None
        offset = address(array) - address(np.frombuffer(memory, np.uint8))
        return memory, offset, array.shape, array.strides, self.dtype(array)

    def from_shared_handle(self, handle: Any) -> np.ndarray[Any, Any]:
        """Return an array over another process's memory."""
        memory, offset, shape, strides, dtype = handle
        return np.ndarray(shape, NATIVES[dtype], memory, offset, strides)

    def dlpack_device(self, array: np.ndarray[Any, Any]) -> tuple[int, int]:
        """Return the device of DLPack's kDLCPU."""
        return array.__dlpack_device__()

    def to_dlpack(self, array: np.ndarray[Any, Any], **options: Any) -> Any:
        """Return a DLPack capsule."""
        if array.dtype == _BFLOAT16:
            return as_bfloat16(array.view(np.uint16).__dlpack__(**options))
        return array.__dlpack__(**options)

    def from_dlpack(self, producer: Any) -> np.ndarray[Any, Any]:
        """Return an array over the producer's memory."""
        source = BitsOfBfloat16(producer)
        array = np.from_dlpack(source)
        if source.writable and not array.flags.writeable:
            # NumPy lets nobody write to what came without a version of DLPack.
            array = np.asarray(_Memory(array))
        return array.view(_BFLOAT16) if source.found else array
