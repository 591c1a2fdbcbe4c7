"""Memory, copies and compiled programs of OpenCL devices."""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from importlib import resources
from typing import Any

import numpy as np

from tensorplug.plugin import (
    DeviceRuntime,
    DType,
    Number,
    Shape,
    contiguous_strides,
    wrap_integer,
)

from .arrays import NATIVES, OpenCLArray, packed, place_of
from .presence import usable_devices

GROUP = 64


class Device:
    """One OpenCL device: its context, its queue, its memory, and the programs compiled for it."""

    def __init__(self, device: Any) -> None:
        import pyopencl as cl

        self.cl = cl
        self.device = device
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context)
        self.pool = cl.tools.MemoryPool(cl.tools.ImmediateAllocator(self.queue))
        self.has_double = "cl_khr_fp64" in device.extensions.split()
        self.peak = 0
        self._programs: dict[tuple[Any, ...], Any] = {}
        self._lock = threading.Lock()

    def allocate(self, nbytes: int) -> Any:
        """Return a buffer; the pool takes it back when nobody holds it any more."""
        try:
            buffer = self.pool.allocate(max(nbytes, 1))
        except (
            self.cl.MemoryError,
            self.cl.LogicError,
        ) as error:  # the latter: beyond the device's limit
            raise RuntimeError(
                f"opencl: out of memory: {nbytes} bytes were asked for, {self.pool.active_bytes} "
                f"are in use and {self.pool.managed_bytes - self.pool.active_bytes} cached, of "
                f"{self.device.global_mem_size} on {self.device.name}"
            ) from error
        self.peak = max(self.peak, self.pool.active_bytes)
        return buffer

    def kernel(self, file: str, name: str, **defines: str) -> Any:
        """Return a kernel of a source file, compiled with some macros defined."""
        key = (file, name, *defines.items(), threading.get_ident())
        found = self._programs.get(key)
        if found is None:
            with self._lock:
                found = self._programs[key] = self._compiled(file, name, defines)
        return found

    def _compiled(self, file: str, name: str, defines: dict[str, str]) -> Any:
        folder = resources.files(__package__) / "sources"
        lines = [f"#define {macro} {text}" for macro, text in defines.items()]
        lines += ["#define HAS_DOUBLE"] if self.has_double else []
        parts = [(folder / part).read_text("utf-8") for part in ("prelude.cl", file)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the compiler's remarks
            program = self.cl.Program(self.context, "\n".join([*lines, *parts])).build()
        return self.cl.Kernel(program, name)

    def run(self, kernel: Any, size: Shape, *arguments: Any) -> None:
        """Queue a kernel for at least `size` work items."""
        if 0 in size:
            return
        kernel.set_args(*[a.buffer if isinstance(a, OpenCLArray) else a for a in arguments])
        local = (GROUP,) + (1,) * (len(size) - 1)
        whole = (-(-size[0] // GROUP) * GROUP, *size[1:])
        self.cl.enqueue_nd_range_kernel(self.queue, kernel, whole, local)


class OpenCLRuntime(DeviceRuntime):
    """Every OpenCL device that can be used, of every platform that is installed."""

    type = "opencl"
    array_type = OpenCLArray
    dtypes = tuple(NATIVES)
    capabilities = frozenset({"float64", "float16", "bfloat16", "complex", "views", "in_place"})

    def __init__(self) -> None:
        self._current = threading.local()
        self._open: dict[int, Device] = {}
        self._lock = threading.Lock()

    @cached_property
    def _found(self) -> tuple[list[Any], str | None]:
        """The devices, or why there is none."""
        return usable_devices()

    def at(self, index: int) -> Device:
        """Return a device, opened when it is first used."""
        device = self._open.get(index)
        if device is None:
            with self._lock:
                if index not in self._open:
                    self._open[index] = Device(self._found[0][index])
                device = self._open[index]
        return device

    # --- presence ---

    def unavailable_reason(self) -> str | None:
        """Return what is missing: the package, a platform, a device that compiles programs."""
        return self._found[1]

    def device_count(self) -> int:
        """Return the number of devices."""
        return len(self._found[0])

    def current_device(self) -> int:
        """Return this thread's device."""
        return getattr(self._current, "index", 0)

    def set_device(self, index: int) -> None:
        """Make a device this thread's."""
        if not 0 <= index < self.device_count():
            raise ValueError(f"opencl has {self.device_count()} devices, got index {index}")
        self._current.index = index

    def device_guard(self, index: int) -> AbstractContextManager[Any] | None:
        """Return a context in which new arrays are made on a device."""
        return self._guard(index) if self.device_count() > 1 else None

    @contextmanager
    def _guard(self, index: int) -> Any:
        before = self.current_device()
        self._current.index = index
        try:
            yield
        finally:
            self._current.index = before

    def device_name(self, index: int) -> str:
        """Return the hardware's name."""
        return str(self._found[0][index].name)

    def properties(self, index: int) -> Mapping[str, Any]:
        """Return facts about a device."""
        device = self._found[0][index]
        return {
            "name": device.name,
            "version": device.version,
            "compute_units": device.max_compute_units,
            "total_memory": device.global_mem_size,
        }

    # --- arrays ---

    def new(self, shape: Shape, dtype: DType, index: int) -> OpenCLArray:
        """Return a new array whose elements may hold anything."""
        nbytes = math.prod(shape) * dtype.itemsize
        buffer = self.at(index).allocate(nbytes)
        return OpenCLArray(buffer, nbytes, index, shape, contiguous_strides(shape), 0, dtype)

    def empty(self, shape: Shape, dtype: DType, index: int) -> OpenCLArray:
        """Return a new array whose elements may hold anything."""
        return self.new(shape, dtype, index)

    def dtype(self, array: OpenCLArray) -> DType:
        """Return the dtype of `array`."""
        return array.dtype

    def strides(self, array: OpenCLArray) -> Shape:
        """Return the strides of `array` in elements."""
        return array.strides

    def storage_offset(self, array: OpenCLArray) -> int:
        """Return how many elements of the buffer lie before `array`."""
        return array.offset

    def data_pointer(self, array: OpenCLArray) -> int:
        """Return a number that tells buffers, and places in them, apart."""
        return int(array.buffer.int_ptr) + array.offset * array.dtype.itemsize

    def scalar(self, value: Number, dtype: DType, index: int) -> OpenCLArray:
        """Return a 0-d array; integers wrap around as in C."""
        native = NATIVES[dtype]
        with np.errstate(all="ignore"):
            return self.from_host(
                np.asarray(wrap_integer(value, dtype)).astype(native), dtype, index
            )

    def copy_into(self, target: OpenCLArray, source: OpenCLArray) -> None:
        """Copy the elements of `source` to those of `target`, by way of the host between devices."""
        if source.index != target.index:
            source = self.from_host(self.to_host(source), source.dtype, target.index)
        elif source.buffer is target.buffer:
            source = self._row_by_row(source)  # they may overlap
        self._copy(target, source.broadcast_to(target.shape))

    def _copy(self, target: OpenCLArray, source: OpenCLArray) -> None:
        name = target.dtype.name
        device = self.at(target.index)
        kernel = device.kernel(
            "pointwise.cl", "pointwise", A=name, B=name, C=name, R=name, EXPRESSION="a"
        )
        layout = packed(target.shape, place_of(target), *[place_of(source)] * 3)
        size = (math.prod(target.shape),)
        device.run(kernel, size, layout, target, source, source, source)

    def _row_by_row(self, array: OpenCLArray) -> OpenCLArray:
        result = self.new(array.shape, array.dtype, array.index)
        self._copy(result, array)
        return result

    # --- host ---

    def from_host(self, array: Any, dtype: DType, index: int) -> OpenCLArray:
        """Carry the contents of a NumPy array in."""
        host = np.array(array, dtype=NATIVES[dtype], order="C", copy=True)
        result = self.new(tuple(host.shape), dtype, index)
        if host.size:
            device = self.at(index)
            # The copy has to be done before the host's memory goes.
            device.cl.enqueue_copy(
                device.queue, result.buffer, host.reshape(-1).view(np.uint8), is_blocking=True
            )
        return result

    def to_host(self, array: OpenCLArray) -> Any:
        """Carry the contents out, when everything queued before is done."""
        host = np.empty(array.shape, NATIVES[array.dtype])
        if host.size:
            if not (array.is_contiguous() and array.nbytes == host.nbytes):
                array = self._row_by_row(array)
            device = self.at(array.index)
            device.cl.enqueue_copy(
                device.queue, host.reshape(-1).view(np.uint8), array.buffer, is_blocking=True
            )
        return host

    # --- time and memory ---

    def synchronize(self, index: int) -> None:
        """Wait until everything queued on a device is done."""
        self.at(index).queue.finish()

    def memory_stats(self, index: int) -> Mapping[str, int]:
        """Return bytes in use, at their peak, and held by the pool."""
        device = self.at(index)
        return {
            "allocated": device.pool.active_bytes,
            "peak_allocated": device.peak,
            "reserved": device.pool.managed_bytes,
        }

    def reset_peak_memory_stats(self, index: int) -> None:
        """Make the peak start again from the present."""
        self.at(index).peak = self.at(index).pool.active_bytes

    def empty_cache(self) -> None:
        """Give the buffers that nobody uses back to the driver."""
        for device in self._open.values():
            device.pool.free_held()
