"""What a device type supplies beside kernels."""

from __future__ import annotations

import builtins
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import Any

from ..errors import DeviceNotAvailableError
from ..tensor.shapes import Shape, contiguous_strides, is_contiguous
from .dtypes import DType, Number


class DeviceRuntime:
    """The runtime of one device type: memory, copies, synchronisation.

    A plugin subclasses it, overrides what its device has, and hands one instance to
    ``tensorplug_devices``. An *array* below is whatever the plugin's kernels take and return; core
    asks of it only a ``shape`` tuple. Nothing here sees a Tensor.

    Attributes
    ----------
    type : str
        The device type, as in ``to("type")``.
    array_type : type
        The class of the arrays, of its own: core tells arrays from plain values by it, so neither a
        number nor a sequence. A kernel may return something else (NumPy turns 0-d results into
        scalars), also an instance of a subclass; it then goes through :meth:`as_array`.
    dtypes : collection of DType, optional
        The dtypes that arrays can have; None for all but those of eight bits, ``FLOAT8``.
    capabilities : frozenset of str
        What the conformance suite may ask of the device, see :data:`CAPABILITIES`.
    expected_failures : mapping of str to str
        Cases of the conformance suite that fail, and why: ``{"forward/erfinv-float16": "no such
        function in half precision"}``. The names are those the suite prints, and may be patterns
        as :mod:`fnmatch` has them; a case that is named here and passes is a failure.
    autocast_dtype : str
        The name of the dtype that autocast computes in unless another is asked for.
    namespace : mapping of str to object
        Further names that users find as ``tp.<type>.<name>`` (streams, events …).
    """

    #: What every runtime has to supply; registration refuses one that lacks any of them.
    required = ("dtype", "empty", "scalar", "copy_into", "from_host", "to_host")

    type: str
    array_type: builtins.type[Any]  # the attribute above hides the name
    dtypes: Collection[DType] | None = None
    capabilities: frozenset[str] = frozenset()
    expected_failures: Mapping[str, str] = MappingProxyType({})
    autocast_dtype: str = "bfloat16"
    namespace: Mapping[str, Any] = MappingProxyType({})

    # --- presence ---

    def unavailable_reason(self) -> str | None:
        """Return why no device can be used (driver, hardware, library), or None if one can."""
        return None

    def device_count(self) -> int:
        """Return the number of devices."""
        return 1

    def current_device(self) -> int:
        """Return the index that a device without index stands for."""
        return 0

    def set_device(self, index: int) -> None:
        """Make `index` the current device of this thread."""
        if index != 0:
            raise DeviceNotAvailableError(f"{self.type} has one device, got index {index}")

    def device_guard(self, index: int) -> AbstractContextManager[Any] | None:
        """Return a context in which this thread's kernels run on device `index`.

        Kernels that only make arrays (``fill_new``) learn from it where to; of others it is the
        device of their arguments. None, the default, stands for a device type with one device.
        """
        return None

    def device_name(self, index: int) -> str:
        """Return a name for people, such as the hardware's product name."""
        return self.type

    def properties(self, index: int) -> Mapping[str, Any]:
        """Return facts about a device, for ``tp.<type>.get_device_properties``."""
        return {"name": self.device_name(index)}

    # --- arrays ---

    def dtype(self, array: Any) -> DType:
        """Return the dtype of `array`."""
        raise NotImplementedError

    def strides(self, array: Any) -> Shape:
        """Return the strides of `array` in elements; needed by a device with views."""
        return contiguous_strides(array.shape)

    def is_contiguous(self, array: Any) -> bool:
        """Return whether the elements lie in memory row by row without gaps."""
        return is_contiguous(tuple(array.shape), self.strides(array))

    def is_at_start(self, array: Any) -> bool:
        """Return whether the elements lie as those of a new array: row by row from the storage's first."""
        return self.is_contiguous(array) and not self.storage_offset(array)

    def storage_offset(self, array: Any) -> int:
        """Return how many elements of its storage lie before `array`; needed by views."""
        return 0

    def storage_nbytes(self, array: Any) -> int:
        """Return how many bytes the storage of `array` has; asked for by ``untyped_storage``.

        A device whose storages reach beyond their arrays overrides it: this counts up to the last element.
        """
        shape = tuple(array.shape)
        if 0 in shape:
            return 0
        steps = [(n - 1) * step for n, step in zip(shape, self.strides(array), strict=True)]
        return (self.storage_offset(array) + sum(steps) + 1) * self.dtype(array).itemsize

    def data_pointer(self, array: Any) -> int:
        """Return the address of the first element, or 0 if the device has no addresses."""
        return 0

    def as_array(self, value: Any) -> Any:
        """Return a kernel's result as an array of ``array_type``."""
        return value

    def empty(self, shape: Shape, dtype: DType, index: int) -> Any:
        """Return a new contiguous array; its elements may hold anything."""
        raise NotImplementedError

    def scalar(self, value: Number, dtype: DType, index: int) -> Any:
        """Return a new 0-d array that holds a Python number converted to `dtype`.

        Integers wrap around as in C; ``tensorplug.plugin.wrap_integer`` does that.
        """
        raise NotImplementedError

    def copy_into(self, target: Any, source: Any) -> None:
        """Copy `source`, of the same shape and dtype, into the memory of `target`."""
        raise NotImplementedError

    # --- host ---

    def from_host(self, array: Any, dtype: DType, index: int) -> Any:
        """Return a new device array with the contents of a NumPy array whose dtype is `dtype`."""
        raise NotImplementedError

    def to_host(self, array: Any) -> Any:
        """Return the contents as a NumPy array; without a copy where the memory is the host's."""
        raise NotImplementedError

    def wrap_host(self, array: Any) -> Any | None:
        """Return a device array that shares the memory of a NumPy array, or None if impossible."""
        return None

    def queue_from_host(self, array: Any, dtype: DType, index: int) -> Any | None:
        """Return what :meth:`from_host` does, of a NumPy array that may be read after the return.

        Asked for by ``non_blocking=True``: the user leaves the contents as they are until the device is
        synchronized; that the memory outlasts the copy is the runtime's care. None to copy as always.
        """
        return None

    def queue_to_host(self, array: Any, target: Any | None = None) -> Any | None:
        """Return a NumPy array into which the contents are copied, which may be after the return.

        Asked for by ``non_blocking=True``: the user reads it when the device is synchronized; that the
        memory outlasts the copy is the runtime's care. `target` is a NumPy array of the same shape and
        dtype to copy into. None to copy as always.
        """
        return None

    def copy_from(self, array: Any, source: DeviceRuntime, index: int) -> Any | None:
        """Return a copy of another device's array, or None to let it go through the host."""
        return None

    # --- exchange ---

    def dlpack_device(self, array: Any) -> tuple[int, int]:
        """Return (device type, device id) of the DLPack standard."""
        raise BufferError(f"device type {self.type!r} does not support DLPack")

    def to_dlpack(self, array: Any, **options: Any) -> Any:
        """Return a DLPack capsule of `array`; `options` are those of ``__dlpack__``."""
        raise BufferError(f"device type {self.type!r} does not support DLPack")

    def from_dlpack(self, producer: Any) -> Any:
        """Return an array that shares the memory of an object with ``__dlpack__``."""
        raise BufferError(f"device type {self.type!r} does not support DLPack")

    #: The attribute by which libraries for this device show arrays to each other without DLPack, if there is
    #: one. Tensors of the device get it, and ``as_tensor`` takes objects that have it.
    array_protocol: str = ""

    def to_protocol(self, array: Any) -> Any:
        """Return the value of the attribute :attr:`array_protocol` for a tensor with this array."""
        raise NotImplementedError

    def from_protocol(self, producer: Any) -> Any:
        """Return an array over the memory of an object with the attribute :attr:`array_protocol`."""
        raise NotImplementedError

    def device_index(self, array: Any) -> int:
        """Return the number of the device that an array from :meth:`from_protocol` is on."""
        return 0

    # --- other processes ---

    def share(self, array: Any) -> Any | None:
        """Return the contents of `array` in memory that other processes can map.

        `array` itself if it is there already; None if the device has no such memory.
        """
        return None

    def shared_handle(self, array: Any) -> Any | None:
        """Return what tells another process's :meth:`from_shared_handle` where `array` is.

        Something that ``multiprocessing`` can pickle; None if other processes cannot see `array`.
        """
        return None

    def from_shared_handle(self, handle: Any) -> Any:
        """Return an array over memory that another process shares."""
        raise NotImplementedError

    # --- page-locked host memory ---

    def pin(self, array: Any) -> Any | None:
        """Return a NumPy array's contents in host memory from which copies to this device go fast.

        The result is a NumPy array as well, `array` itself if it is such memory; None if the device
        knows no difference.
        """
        return None

    def is_pinned(self, array: Any) -> bool:
        """Return whether a NumPy array is in memory that :meth:`pin` returned."""
        return False

    # --- time and memory ---

    def record_stream(self, array: Any, stream: Any) -> None:
        """Keep the memory of `array` until a stream, of the runtime's own class, is done with it."""

    def current_queue(self, index: int) -> Any:
        """Return the queue of a device on which this thread's ops go; None where there is only one.

        It is a context manager within which ops go there, and equals itself only.
        ``wait_stream(other)`` makes it wait for all that is queued on another,
        ``wait_event(other.record_event())`` for what was queued when the mark was put.
        ``plugin.queues_differ`` has to be told when a thread turns to another than the usual one.
        """
        return None

    def quiet(self) -> AbstractContextManager[Any]:
        """Return a context in which the array library warns of no floating-point event."""
        return nullcontext()

    def set_num_threads(self, number: int) -> None:
        """Limit how many threads kernels use; for devices whose kernels run on the host."""

    def synchronize(self, index: int) -> None:
        """Wait until everything queued on a device is done."""

    def memory_stats(self, index: int) -> Mapping[str, int]:
        """Return memory figures in bytes, such as ``allocated`` and ``peak_allocated``."""
        return {}

    def reset_peak_memory_stats(self, index: int) -> None:
        """Make the peak figures start again from the present."""

    def empty_cache(self) -> None:
        """Give cached memory back."""


class RuntimeExtension:
    """What a plugin adds to the runtime of a device that is another plugin's.

    Kernels that come with threads or an allocator of their own have to be told of limits, and asked for
    their figures. Whatever the device's own runtime is told or asked, its extensions are as well.

    Attributes
    ----------
    type : str
        The device type.
    namespace : mapping of str to object
        Further names that users find as ``tp.<type>.<name>``.
    """

    type: str
    namespace: Mapping[str, Any] = MappingProxyType({})

    def set_num_threads(self, number: int) -> None:
        """Limit how many threads kernels use."""

    def memory_stats(self, index: int) -> Mapping[str, int]:
        """Return memory figures in bytes; they stand in for the runtime's of the same name."""
        return {}

    def reset_peak_memory_stats(self, index: int) -> None:
        """Make the peak figures start again from the present."""

    def empty_cache(self) -> None:
        """Give cached memory back."""


class RefusingRuntime(DeviceRuntime):
    """The runtime of tensors that cannot be computed with; every use raises.

    Parameters
    ----------
    former : DeviceRuntime
        In whose place it stands.
    error : type
        What is raised.
    reason : str
        Its message.
    """

    def __init__(self, former: DeviceRuntime, error: builtins.type[Exception], reason: str) -> None:
        self.type = former.type
        self.array_type = former.array_type
        self.error = error
        self.reason = reason

    def unavailable_reason(self) -> str:
        """Return the reason."""
        return self.reason

    def refuse(self, *args: Any, **kwargs: Any) -> Any:
        """Raise the error."""
        raise self.error(self.reason)

    dtype = strides = storage_offset = storage_nbytes = data_pointer = empty = scalar = refuse
    copy_into = from_host = to_host = wrap_host = dlpack_device = to_dlpack = refuse
    queue_from_host = queue_to_host = refuse
    synchronize = quiet = share = shared_handle = from_shared_handle = from_protocol = refuse


class RemovedRuntime(RefusingRuntime):
    """The runtime of a device whose plugin was unregistered.

    Parameters
    ----------
    former : DeviceRuntime
        The runtime that went away.
    plugin : str
        The plugin that brought it.
    """

    def __init__(self, former: DeviceRuntime, plugin: str) -> None:
        reason = (
            f"the tensor lives on device {former.type!r}, which went away when plugin {plugin} was "
            'unregistered; move tensors with .to("cpu") before that, or make this one anew'
        )
        super().__init__(former, DeviceNotAvailableError, reason)


#: What a runtime may declare in ``capabilities``; the conformance suite asks for nothing
#: undeclared.
CAPABILITIES: Mapping[str, str] = {
    "float64": "64-bit floating point",
    "float16": "float16 arithmetic",
    "bfloat16": "bfloat16 arithmetic",
    "complex": "complex64 (and complex128 with float64)",
    "views": "views share memory with their base",
    "in_place": "kernels and copies write into existing arrays",
    "dlpack": "exchange through DLPack",
    "host_memory": "arrays share memory with NumPy arrays",
}
