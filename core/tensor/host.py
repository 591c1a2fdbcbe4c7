"""Tensors and the host: NumPy arrays, buffers, DLPack.

Above the plugin line nothing else sees NumPy but :mod:`.host_data`, :mod:`.host_memory` and :mod:`.printing`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from ..contexts import thread
from ..device.device import CPU, Device
from ..device.dtypes import ALL_DTYPES, FLOAT8, DType, complex32
from ..dispatch import layers
from ..dispatch.keys import DispatchKey, dispatch_key
from ..dispatch.state import dispatch_state
from ..errors import check_flag
from ..plugins import discovery, runtimes
from ..plugins.discovery import find_runtime
from . import exposure
from .base import TensorBase, new_tensor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..device.runtime import DeviceRuntime
    from .tensor import Tensor

NATIVE: dict[DType, np.dtype[Any]] = {
    dtype: np.dtype(getattr(ml_dtypes, dtype.name, dtype.name)) for dtype in (*ALL_DTYPES, *FLOAT8)
}
NATIVE[complex32] = np.dtype([("re", "f2"), ("im", "f2")])  # NumPy has no such numbers
DTYPES: dict[np.dtype[Any], DType] = {native: dtype for dtype, native in NATIVE.items()}

Array = np.ndarray[Any, Any]


def converted(array: Array, native: np.dtype[Any]) -> Array:
    """Return what ``array.astype(native, copy=False)`` does, to and from pairs of halves as well."""
    if array.dtype == native:
        return array
    if array.dtype.names:
        array = readable(array)
    if not native.names:
        return array.astype(native, copy=False)
    result = np.empty_like(array, native)
    result["re"], result["im"] = array.real, array.imag
    return result


def readable(array: Array) -> Array:
    """Return an array as it is, but pairs of halves as the complex numbers of NumPy's."""
    if not array.dtype.names:
        return array
    result = np.empty_like(array, np.complex64)
    result.real, result.imag = array["re"], array["im"]
    return result


def dtype_of(array: Any) -> DType:
    """Return our dtype of a NumPy array or scalar.

    Raises
    ------
    TypeError
        If tensors have no such dtype (strings, objects, dates …).
    """
    native = array.dtype
    dtype = DTYPES.get(native)
    if dtype is None:
        dtype = DTYPES.get(native.newbyteorder("="))
    if dtype is None:
        raise TypeError(
            f"can't convert np.ndarray of type numpy.{native.type.__name__}: tensors have the dtypes "
            f"{', '.join(d.name for d in ALL_DTYPES)}"
        )
    return dtype


def on_device(array: Array, dtype: DType, device: Device) -> Any:
    """Return a tensor on `device` of an array that nobody else uses."""
    key = dispatch_key(device, dtype)
    shared = key.runtime.wrap_host(array)
    if shared is None:
        shared = key.runtime.from_host(array, dtype, key.device.index or 0)
    return _made(shared, key)


def _made(array: Any, key: DispatchKey) -> Any:
    """Return a new tensor of a raw array, an inference tensor in inference mode."""
    tensor = new_tensor(array, key, tuple(array.shape))
    if dispatch_state.inference:
        dispatch_state.gradient.mark_if_inference(tensor)
    return tensor


def host_array(tensor: Any) -> Array:
    """Return a tensor's contents as a NumPy array; no copy where its memory is the host's."""
    if dispatch_state.layers_active:
        layers.note_read(tensor, "as an array of the host")
    return tensor._key.runtime.to_host(tensor._array)


# --- sharing memory ---------------------------------------------------------------------------


def is_array(value: Any) -> bool:
    """Return whether `value` is a NumPy array."""
    return isinstance(value, np.ndarray)


def is_array_scalar(value: Any) -> bool:
    """Return whether `value` is a number of NumPy's."""
    return isinstance(value, np.generic)


def can_share(array: Array) -> bool:
    """Return whether :func:`from_numpy` takes the array's memory as it is."""
    strides = array.strides
    return (
        array.dtype in DTYPES
        and min(strides, default=0) >= 0
        and not any(stride % array.itemsize for stride in strides)
    )


def from_numpy(ndarray: Any) -> Tensor:
    """Return a tensor over the memory of a NumPy array: a write to one shows in the other.

    Parameters
    ----------
    ndarray : numpy.ndarray
        Of a dtype that tensors have, and without negative strides.

    Raises
    ------
    TypeError
        If it is no array, or of a dtype that tensors lack.
    ValueError
        If its strides are negative or no multiples of the element's size, or its byte order is
        foreign.

    Examples
    --------
    >>> import numpy
    >>> import tensorplug as tp
    >>> a = numpy.array([1, 2])
    >>> t = tp.from_numpy(a)
    >>> a[0] = 7
    >>> t
    tensor([7, 2])
    """
    tensor = share_array(ndarray, "from_numpy")
    exposure.take_in(tensor._array)
    return tensor


def share_array(array: Any, name: str) -> Any:
    """Return a "cpu" tensor over the memory of a NumPy array.

    Raises
    ------
    TypeError
        If it is no array, or of a dtype that tensors lack.
    ValueError
        If its strides are negative or no multiples of the element's size, or its byte order is
        foreign.
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name}(): expected np.ndarray (got {type(array).__name__})")
    if not array.dtype.isnative:
        raise ValueError(
            f"{name}(): the array's byte order {array.dtype.byteorder!r} is not this machine's; "
            'convert it with .astype(array.dtype.newbyteorder("="))'
        )
    dtype = dtype_of(array)
    if any(stride < 0 for stride in array.strides):
        raise ValueError(
            f"{name}(): at least one stride of the array is negative ({array.strides}), which "
            "tensors "
            "do not support; pass array.copy()"
        )
    if array.size and any(stride % array.itemsize for stride in array.strides):
        raise ValueError(
            f"{name}(): the strides {array.strides} are not multiples of the element size "
            f"{array.itemsize}; pass array.copy()"
        )
    if not array.flags.writeable:
        import warnings

        warnings.warn(
            f"The given {'buffer' if name == 'frombuffer' else 'NumPy array'} is not writable, and there are "
            f"no non-writable tensors: writing to what {name}() returns will fail. Pass a copy to get memory "
            "of its own",
            UserWarning,
            stacklevel=4,
        )
    key = dispatch_key(CPU, dtype)
    shared = key.runtime.wrap_host(array)
    if shared is None:
        shared = key.runtime.from_host(array, dtype, 0)
    return _made(shared, key)


def from_buffer(buffer: Any, dtype: DType, count: int, offset: int) -> Any:
    """Return a 1-d "cpu" tensor over the memory of an object with the buffer protocol."""
    try:
        view = memoryview(buffer)
    except TypeError:
        raise ValueError(
            "frombuffer(): object does not implement Python buffer protocol: "
            f"{type(buffer).__name__}"
        ) from None
    size, item = view.nbytes, dtype.itemsize
    if not size or not count:
        raise ValueError(
            f"frombuffer(): both buffer length ({size}) and count ({count}) must not be 0"
        )
    if not 0 <= offset < size:
        raise ValueError(
            f"frombuffer(): offset ({offset} bytes) must be non-negative and no greater than "
            "buffer "
            f"length ({size} bytes) minus 1"
        )
    if count < 0 and (size - offset) % item:
        raise ValueError(
            f"frombuffer(): buffer length ({size - offset} bytes) after offset ({offset} bytes) "
            "must "
            f"be a multiple of element size ({item})"
        )
    if count > 0 and count * item > size - offset:
        raise ValueError(
            f"frombuffer(): requested buffer length ({count} * {item} bytes) after offset "
            f"({offset} "
            f"bytes) must not be greater than actual buffer length ({size} bytes)"
        )
    array = np.frombuffer(buffer, NATIVE[dtype], count, offset)
    tensor = share_array(array, "frombuffer")
    exposure.take_in(tensor._array)
    return tensor


# --- to NumPy ---------------------------------------------------------------------------------


def to_numpy(tensor: Tensor, *, force: bool = False) -> Array:
    """Return a tensor as a NumPy array that shares its memory; see ``Tensor.numpy``."""
    if force is not False:
        check_flag(force, "numpy", "force")
    if tensor._key.dtype is complex32:
        raise TypeError("Got unsupported ScalarType ComplexHalf; convert it with .cfloat() first")
    if force:
        tensor = tensor.detach()
    elif tensor.requires_grad and thread.enabled:
        raise RuntimeError(
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
        )
    elif tensor._key.device is not CPU:
        raise TypeError(
            f"can't convert {tensor.device} device type tensor to numpy. Use Tensor.cpu() to copy "
            "the "
            "tensor to host memory first."
        )
    if exposure.watched:
        exposure.hand_out(tensor._array)
    return host_array(tensor)


def to_array(tensor: Tensor, dtype: Any, copy: bool | None) -> Array:
    """Return a tensor as a NumPy array, for ``numpy.asarray(tensor)``."""
    array = to_numpy(tensor)
    if dtype is None and not copy:
        return array
    return np.array(array, dtype=dtype, copy=copy)


def from_array(result: Any, *, flags: DType | None = None) -> Any:
    """Return what NumPy computed as a tensor; `flags` is the dtype of truth values, if not bool."""
    array = np.asarray(result)
    if flags is not None and array.dtype == np.bool_:
        array = array.astype(NATIVE[flags])
    return share_array(array, "from_numpy")


# --- DLPack -----------------------------------------------------------------------------------


_DLPACK_CPU = 1  # kDLCPU


def to_dlpack(tensor: Tensor, options: dict[str, Any]) -> Any:
    """Return a DLPack capsule of a tensor."""
    stream = options.get("stream")
    if stream is not None and type(stream) is not int:
        raise TypeError(f"__dlpack__(): stream must be ``int`` or ``none``, got {stream!r}")
    if tensor.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if dispatch_state.layers_active:
        layers.note_read(tensor, "through DLPack")
    return tensor._key.runtime.to_dlpack(tensor._array, **options)


def is_capsule(value: Any) -> bool:
    """Return whether a value is a DLPack capsule itself, as ``to_dlpack`` gives it."""
    return type(value).__name__ == "PyCapsule"


def from_dlpack(producer: Any, device: Device | str | None = None, copy: bool | None = None) -> Any:
    """Return a tensor over the memory of an object with ``__dlpack__``.

    Parameters
    ----------
    producer : object
        Anything that follows the DLPack protocol: an array or tensor of another library.
    device : Device or str, optional
        Where the result has to be; a copy is made if it is elsewhere.
    copy : bool, optional
        True to copy in any case, False to raise rather than copy.

    Raises
    ------
    BufferError
        If no loaded device runtime takes the producer's memory, or it requires grad.

    Examples
    --------
    >>> import numpy
    >>> import tensorplug as tp
    >>> tp.from_dlpack(numpy.arange(3))
    tensor([0, 1, 2])
    """
    if isinstance(producer, TensorBase):
        own: Any = producer
        if own.requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        result: Any = own.detach()
        return _placed(result, device, copy)
    if is_capsule(producer):
        producer = _Capsule(producer)
    if not hasattr(producer, "__dlpack_device__"):
        raise TypeError(
            f"from_dlpack(): expected an object with __dlpack__ and __dlpack_device__, got "
            f"{type(producer).__name__}"
        )
    find_runtime(CPU.type)
    wanted = tuple(map(int, producer.__dlpack_device__()))
    reasons: list[str] = []
    taken = _taken(producer, wanted, runtimes(), reasons)
    if taken is None and wanted[0] != _DLPACK_CPU:
        # Plugins that nothing has asked for yet may know the device.
        known = runtimes()
        discovery.load_all()
        later = {name: found for name, found in runtimes().items() if name not in known}
        taken = _taken(producer, wanted, later, reasons)
    if taken is not None:
        return _placed(taken, device, copy)
    raise BufferError(
        f"from_dlpack(): no device takes memory of DLPack device {wanted}; tried "
        + "; ".join(reasons)
    )


class _Capsule:
    """What a DLPack capsule came from, as far as the protocol asks it."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        import ctypes

        get, valid = ctypes.pythonapi.PyCapsule_GetPointer, ctypes.pythonapi.PyCapsule_IsValid
        get.restype = ctypes.c_void_p
        valid.argtypes = get.argtypes = [ctypes.py_object, ctypes.c_char_p]
        # The memory's address comes first; its device's type and number follow. From version 1.0 on the
        # version, two pointers and flags stand before them.
        versioned = valid(self.capsule, b"dltensor_versioned")
        name, before = (b"dltensor_versioned", 32) if versioned else (b"dltensor", 0)
        address = get(self.capsule, name) + before + ctypes.sizeof(ctypes.c_void_p)
        kind, number = (ctypes.c_int32 * 2).from_address(address)
        return kind, number


def _taken(
    producer: Any, wanted: tuple[int, ...], among: Mapping[str, DeviceRuntime], reasons: list[str]
) -> Any | None:
    """Return a tensor over a producer's memory, of the first runtime that takes it, or None."""
    for runtime in among.values():
        try:
            array = runtime.from_dlpack(producer)
            if tuple(map(int, runtime.dlpack_device(array))) != wanted:
                continue
        except (BufferError, TypeError, ValueError, RuntimeError) as error:
            reasons.append(f"{runtime.type}: {error}")
            continue
        return _shown(array, runtime, wanted[1])
    return None


def _shown(array: Any, runtime: DeviceRuntime, index: int) -> Any:
    """Return the tensor of a raw array of a runtime."""
    exposure.take_in(array)
    where = Device(CPU.type) if runtime.type == CPU.type else Device(runtime.type, index)
    return _made(array, dispatch_key(where, runtime.dtype(array)))


def from_protocols(producer: Any) -> Any | None:
    """Return a tensor over the memory of an object that shows it by a device's own protocol, or None."""
    for name, device_type in discovery.array_protocols.items():
        if hasattr(producer, name):
            runtime = find_runtime(device_type)
            array = runtime.from_protocol(producer)
            return _shown(array, runtime, runtime.device_index(array))
    return None


def _placed(tensor: Any, device: Device | str | None, copy: bool | None) -> Any:
    if device is not None and Device(device) is not tensor.device:
        if copy is False:
            raise BufferError(
                f"from_dlpack(): the data is on {tensor.device}; reaching {device} needs a copy"
            )
        return tensor.to(device)
    return tensor.clone() if copy else tensor


def numpy_state(base_seed: int, worker: int) -> list[int]:
    """Return what seeds NumPy's own generator in a worker process, the numbers that torch takes."""
    return np.random.SeedSequence((worker, base_seed)).generate_state(4).tolist()


def seed_numpy(state: list[int]) -> None:
    """Seed NumPy's own global generator, which user code in a worker process may draw from."""
    np.random.seed(state)  # noqa: NPY002
