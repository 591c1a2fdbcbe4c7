"""The runtime of device type "cuda": CuPy's arrays."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from tensorplug.plugin import (
    BitsOfBfloat16,
    DeviceNotAvailableError,
    DeviceRuntime,
    DType,
    Number,
    OutOfMemoryError,
    Shape,
    as_bfloat16,
    contiguous_strides,
    wrap_integer,
)

from .._cupy import cp
from ..dtypes import BFLOAT16, DTYPES, NATIVES
from ..kernels.strided import storage, storage_offset
from ..torch_api.names import NAMES
from . import array_interface, availability, copying, scalars, streams
from .memory import DeviceMemory, summary


def _in_rows(array: Any, dtype: DType) -> Any:
    """Return a NumPy array, or a copy, whose elements lie row by row."""
    return np.asarray(array, NATIVES[dtype], order="C")


def _filled(value: Number, dtype: DType) -> Any:
    """Return a 0-d array of the current device and stream that a kernel writes."""
    native = NATIVES[dtype]
    with np.errstate(all="ignore"):
        number = np.asarray(wrap_integer(value, dtype)).astype(native)
    if native == BFLOAT16:
        return cp.full((), int(number.view(np.uint16)), np.uint16).view(BFLOAT16)
    return cp.full((), number.item(), native)


# These take positions, which only the device could look at: see docs/gpu.md.
_POSITIONS = (
    "gather", "index", "index_add", "index_copy", "index_put", "index_select", "scatter", "scatter_add",
    "index_backward",
    "cross_entropy", "nll_loss",
)  # fmt: skip


class NoArray:
    """Stands for the class of arrays where CuPy is not installed, or there is no driver."""


class CudaRuntime(DeviceRuntime):
    """Memory of NVIDIA GPUs, managed by CuPy."""

    type = "cuda"
    array_type: Any = NoArray
    capabilities = frozenset(
        {"float64", "float16", "bfloat16", "complex", "views", "in_place", "dlpack"}
    )
    expected_failures: Mapping[str, str] = MappingProxyType(
        {
            f"errors/{op}": "positions out of bounds raise no error, for which the host would wait"
            for op in _POSITIONS
        }
    )
    autocast_dtype = "float16"
    array_protocol = array_interface.NAME

    def __init__(self) -> None:
        self._memory = DeviceMemory()
        self._copies = copying.Copies(self._memory.uses)
        self.namespace: Mapping[str, Any] = {
            **NAMES,
            "OutOfMemoryError": OutOfMemoryError,
            "can_device_access_peer": self._can_access_peer,
            "device_memory_used": self._used,
            "get_per_process_memory_fraction": self._fraction,
            "max_memory_cached": self._peak_reserved,
            "mem_get_info": self._free_and_total,
            "memory_cached": self._reserved,
            "memory_summary": self._summary,
            "reset_max_memory_allocated": self._reset_peaks,
            "reset_max_memory_cached": self._reset_peaks,
            "set_per_process_memory_fraction": self._set_fraction,
        }
        if self._reason is None:
            self.array_type = cp.ndarray
            self._memory.install()

    # --- presence ---

    @cached_property
    def _reason(self) -> str | None:
        return availability.unusable()

    def unavailable_reason(self) -> str | None:
        """Return what is missing (package, driver, device, compiler), or None."""
        return self._reason

    @cached_property
    def _count(self) -> int:
        return 0 if self._reason is not None else int(cp.cuda.runtime.getDeviceCount())

    def device_count(self) -> int:
        """Return the number of GPUs."""
        return self._count

    def current_device(self) -> int:
        """Return this thread's current GPU."""
        return int(cp.cuda.runtime.getDevice())

    def set_device(self, index: int) -> None:
        """Make a GPU this thread's current one."""
        if not 0 <= index < self._count:
            raise DeviceNotAvailableError(
                f"cuda:{index} does not exist: there are {self._count} device(s)"
            )
        cp.cuda.runtime.setDevice(index)

    def device_guard(self, index: int) -> AbstractContextManager[Any] | None:
        """Return a context in which this thread's kernels run on GPU `index`; None where there is one."""
        return cp.cuda.Device(index) if self._count > 1 else None

    def _on(self, index: int) -> AbstractContextManager[Any]:
        return self.device_guard(index) or nullcontext()

    def device_name(self, index: int) -> str:
        """Return the GPU's product name."""
        return str(self.properties(index)["name"])

    def properties(self, index: int) -> Mapping[str, Any]:
        """Return facts about a GPU."""
        facts = cp.cuda.runtime.getDeviceProperties(index)
        return {
            "name": facts["name"].decode(),
            "major": facts["major"],
            "minor": facts["minor"],
            "total_memory": facts["totalGlobalMem"],
            "multi_processor_count": facts["multiProcessorCount"],
            "warp_size": facts["warpSize"],
        }

    # --- arrays ---

    def dtype(self, array: Any) -> DType:
        """Return the dtype of `array`."""
        return DTYPES[array.dtype]

    def strides(self, array: Any) -> Shape:
        """Return the strides of `array` in elements."""
        if not array.size:  # CuPy gives them strides that say nothing
            return contiguous_strides(array.shape)
        itemsize = array.itemsize
        return tuple([stride // itemsize for stride in array.strides])

    def is_contiguous(self, array: Any) -> bool:
        """Return whether the elements lie in memory row by row without gaps."""
        return array.flags.c_contiguous

    def storage_offset(self, array: Any) -> int:
        """Return how many elements lie between the memory's first element and this array's."""
        return storage_offset(array)

    def storage_nbytes(self, array: Any) -> int:
        """Return how many bytes of the memory are in use."""
        return storage(array)[1]

    def data_pointer(self, array: Any) -> int:
        """Return the address of the first element."""
        return array.data.ptr

    def empty(self, shape: Shape, dtype: DType, index: int) -> Any:
        """Return a new array with arbitrary contents."""
        with self._on(index):
            return cp.empty(shape, NATIVES[dtype])

    def scalar(self, value: Number, dtype: DType, index: int) -> Any:
        """Return a 0-d array; integers wrap around as in C. A kernel writes it: nothing waits for a copy."""
        return scalars.number(lambda: _filled(value, dtype), index, streams.alone())

    def copy_into(self, target: Any, source: Any) -> None:
        """Copy `source` into `target`."""
        with target.device:
            target[...] = source

    # --- host and other devices ---

    def from_host(self, array: Any, dtype: DType, index: int) -> Any:
        """Return a copy of a host array, queued through page-locked memory."""
        if not array.shape:
            with self._on(index):
                return _filled(array.item(), dtype)
        with self._on(index):
            return self._copies.send(_in_rows(array, dtype), straight=False)

    def to_host(self, array: Any) -> Any:
        """Return a copy on the host; waits for what computes the array."""
        with array.device:
            return self._copies.fetch(array)

    def queue_from_host(self, array: Any, dtype: DType, index: int) -> Any | None:
        """Return a copy of a host array, read where it lies if that is page-locked memory."""
        rows = _in_rows(array, dtype)
        with self._on(index):
            return self._copies.send(rows, straight=copying.is_pinned(rows))

    def queue_to_host(self, array: Any, target: Any | None = None) -> Any | None:
        """Return page-locked memory of the host into which a copy is queued."""
        with array.device:
            if target is None:
                target = self._copies.pinned(np.empty(array.shape, array.dtype))
            elif not (copying.is_pinned(target) and target.flags.c_contiguous):
                return None
            self._copies.fetch_into(array, target)
            return target

    def copy_from(self, array: Any, source: DeviceRuntime, index: int) -> Any | None:
        """Return a copy of another GPU's array, sent from GPU to GPU."""
        if source is not self:
            return None
        if array.device.id == index:
            with array.device:
                return array.copy(order="C")
        return copying.to_device(array, index)

    def dlpack_device(self, array: Any) -> tuple[int, int]:
        """Return the device of DLPack's kDLCUDA."""
        return array.__dlpack_device__()

    def to_dlpack(self, array: Any, **options: Any) -> Any:
        """Return a DLPack capsule."""
        if array.dtype == BFLOAT16:
            return as_bfloat16(array.view("uint16").__dlpack__(**options))
        return array.__dlpack__(**options)

    def from_dlpack(self, producer: Any) -> Any:
        """Return an array over the producer's memory."""
        source = BitsOfBfloat16(producer)
        array = cp.from_dlpack(source)
        return array.view(BFLOAT16) if source.found else array

    def to_protocol(self, array: Any) -> Any:
        """Return the dictionary of ``__cuda_array_interface__``."""
        return array_interface.shown(array)

    def from_protocol(self, producer: Any) -> Any:
        """Return an array over the memory of an object with ``__cuda_array_interface__``."""
        return array_interface.taken(producer)

    def device_index(self, array: Any) -> int:
        """Return the number of the GPU that an array is on."""
        return int(array.device.id)

    # --- page-locked memory ---

    def pin(self, array: Any) -> Any | None:
        """Return the contents in page-locked memory of the host."""
        if self._reason is not None:
            return None
        if copying.is_pinned(array):
            return array
        pinned = self._copies.pinned(array)
        pinned[...] = array
        return pinned

    def is_pinned(self, array: Any) -> bool:
        """Return whether a NumPy array is in memory that :meth:`pin` returned."""
        return self._reason is None and copying.is_pinned(array)

    # --- time and memory ---

    def current_queue(self, index: int) -> streams.Stream:
        """Return the stream on which this thread's work goes."""
        return streams.current_stream(index)

    def record_stream(self, array: Any, stream: Any) -> None:
        """Note that a stream uses an array, whose memory is held until it has come past that."""
        if not isinstance(stream, streams.Stream):
            raise TypeError(
                f"record_stream(): expects a tp.cuda.Stream, got {type(stream).__name__}"
            )
        self._memory.uses.record(array, stream)

    def synchronize(self, index: int) -> None:
        """Wait until everything queued on a GPU is done."""
        with self._on(index):
            cp.cuda.runtime.deviceSynchronize()

    def memory_stats(self, index: int) -> Mapping[str, int]:
        """Return memory figures in bytes."""
        with self._on(index):
            return self._memory.stats()

    def reset_peak_memory_stats(self, index: int) -> None:
        """Make the peak figures start again from the present."""
        with self._on(index):
            self._memory.reset_peaks()

    def empty_cache(self) -> None:
        """Give back the memory of every GPU that no array uses."""
        for index in range(self._count):
            with self._on(index):
                self._memory.empty_cache()

    def _free_and_total(self, device: Any = None) -> tuple[int, int]:
        """Return the bytes of the GPU's memory that are free, and all it has."""
        with self._on(streams._index(device)):
            free, total = cp.cuda.runtime.memGetInfo()
            return int(free), int(total)

    def _used(self, device: Any = None) -> int:
        """Return the bytes of the GPU's memory that are in use, by whichever process."""
        free, total = self._free_and_total(device)
        return total - free

    def _reserved(self, device: Any = None) -> int:
        """Return the bytes that the allocator holds; torch's old name of ``memory_reserved``."""
        return self.memory_stats(streams._index(device))["reserved"]

    def _peak_reserved(self, device: Any = None) -> int:
        """Return the most bytes that the allocator held; torch's old name of ``max_memory_reserved``."""
        return self.memory_stats(streams._index(device))["peak_reserved"]

    def _reset_peaks(self, device: Any = None) -> None:
        """Make the peaks start again; torch's old names of ``reset_peak_memory_stats``."""
        self.reset_peak_memory_stats(streams._index(device))

    def _fraction(self, device: Any = None) -> float:
        """Return which part of a GPU's memory this process may take."""
        with self._on(streams._index(device)):
            return self._memory.fraction()

    def _summary(self, device: Any = None, abbreviated: bool = False) -> str:
        """Return the memory figures as a table."""
        index = streams._index(device)
        return summary(self.memory_stats(index), f"cuda:{index}, {self.device_name(index)}")

    def _set_fraction(self, fraction: float, device: Any = None) -> None:
        """Limit how much of a GPU's memory this process takes."""
        with self._on(streams._index(device)):
            self._memory.set_fraction(fraction)

    def _can_access_peer(self, device: Any, peer_device: Any) -> bool:
        """Return whether one GPU can read another's memory."""
        own, peer = streams._index(device), streams._index(peer_device)
        return bool(cp.cuda.runtime.deviceCanAccessPeer(own, peer))
