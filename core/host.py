"""Tensors and the host: NumPy arrays, nested sequences, buffers, DLPack, pickles.

Beside :mod:`.printing` this is the only module above the plugin line that sees NumPy.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from .devices import CPU, Device
from .dtypes import (
    ALL_DTYPES,
    BOOL,
    COMPLEX,
    DType,
    default_complex,
    get_default_dtype,
    iinfo,
    promote_types,
)
from .kinds import kind_of
from .shapes import contiguous_strides
from .tensor_base import TRACKED, TensorBase, new_tensor

if TYPE_CHECKING:
    from .tensor import Tensor

NATIVE: dict[DType, np.dtype[Any]] = {
    dtype: np.dtype(ml_dtypes.bfloat16 if dtype.name == "bfloat16" else dtype.name)
    for dtype in ALL_DTYPES
}
DTYPES: dict[np.dtype[Any], DType] = {native: dtype for dtype, native in NATIVE.items()}

Array = np.ndarray[Any, Any]


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
            f"can't convert np.ndarray of type {native}: tensors have the dtypes "
            f"{', '.join(d.name for d in ALL_DTYPES)}"
        )
    return dtype


# --- from Python data -------------------------------------------------------------------------

_LEAVES = {bool: 0, int: 1, float: 2, complex: 3}
_RANKED = (bool, int, float, complex)


def from_data(data: Any, dtype: DType | None, name: str) -> tuple[Array, DType]:
    """Return new memory with the contents of `data`, and its dtype.

    Parameters
    ----------
    data : number, array or nested sequence
        What ``tp.tensor`` takes, but for tensors themselves.
    dtype : DType or None
        The dtype to convert to; None to infer it as torch does.
    name : str
        The function, for messages.
    """
    kind = type(data)
    if kind in _LEAVES:
        return _fill([data], (), dtype or _number_dtype({kind}), name), dtype or _number_dtype(
            {kind}
        )
    if isinstance(data, (list, tuple)):
        flat = _flatten(data, name)
        if flat is not None:
            items, shape, types = flat
            chosen = dtype or _number_dtype(types)
            return _fill(items, shape, chosen, name), chosen
    array, inferred = _convert(data, name)
    chosen = dtype or inferred
    return _cast(array, chosen, copy=True), chosen


def _number_dtype(types: set[type]) -> DType:
    """Return the dtype of a collection of Python numbers of these types."""
    rank = max((_LEAVES[kind] for kind in types), default=2)
    if rank == 2:
        return get_default_dtype()
    return default_complex() if rank == 3 else (ALL_DTYPES[0] if rank == 0 else _INT64)


_INT64 = next(dtype for dtype in ALL_DTYPES if dtype.name == "int64")


def _flatten(data: Any, name: str) -> tuple[list[Any], tuple[int, ...], set[type]] | None:
    """Return numbers, shape and number types of nested lists; None if they hold anything else."""
    shape = [len(data)]
    level: list[Any] = list(data)
    while level:
        types = set(map(type, level))
        if types <= _LEAVES.keys():
            return level, tuple(shape), types
        if not types <= {list, tuple}:
            return None
        size = len(level[0])
        for item in level:
            if len(item) != size:
                raise ValueError(
                    f"{name}(): expected sequence of length {size} at dim {len(shape)} "
                    f"(got {len(item)})"
                )
        shape.append(size)
        level = list(chain.from_iterable(level))
    return level, tuple(shape), set()


def _fill(items: list[Any], shape: tuple[int, ...], dtype: DType, name: str) -> Array:
    """Return Python numbers as an array of `dtype`."""
    native = NATIVE[dtype]
    try:
        if dtype.category == BOOL:
            return np.array([bool(item) for item in items], native).reshape(shape)
        with np.errstate(all="ignore"):
            return np.array(items, native).reshape(shape)
    except OverflowError:
        if all(isinstance(item, int) for item in items):
            return _fill_wrapped(items, shape, dtype, name)
        raise RuntimeError(_overflow(name, dtype)) from None
    except ValueError:  # a NaN for an integer
        raise RuntimeError(_overflow(name, dtype)) from None
    except TypeError:
        raise TypeError(f"{name}(): a complex number cannot become {dtype.name}") from None


def _fill_wrapped(items: list[int], shape: tuple[int, ...], dtype: DType, name: str) -> Array:
    """Return ints of which some are out of range: a negative one wraps in an unsigned dtype."""
    if dtype.category > 1:
        raise RuntimeError(_overflow(name, dtype))
    limits = iinfo(dtype)
    lowest = limits.min if dtype.is_signed else -limits.max
    if min(items) < lowest or max(items) > limits.max:
        if max(items) >= 1 << 63 or min(items) < -(1 << 63):
            raise ValueError(f"{name}(): an int does not fit into 64 bits with a sign")
        raise RuntimeError(_overflow(name, dtype))
    return np.array([item % (limits.max + 1) for item in items], NATIVE[dtype]).reshape(shape)


def _overflow(name: str, dtype: DType) -> str:
    return f"{name}(): a value cannot be converted to type {dtype.name} without overflow"


def _convert(data: Any, name: str) -> tuple[Array, DType]:
    """Return `data` of any accepted sort as an array, perhaps over its memory, and its dtype."""
    if type(data) in _LEAVES:
        dtype = _number_dtype({type(data)})
        return _fill([data], (), dtype, name), dtype
    if isinstance(data, TensorBase):
        array = data._kind.runtime.to_host(data._array)
        return array, data._kind.dtype
    if isinstance(data, (str, bytes)):
        raise TypeError(f"{name}(): invalid data type '{type(data).__name__}'")
    if isinstance(data, (np.ndarray, np.generic)):
        return np.asarray(data), dtype_of(data)
    if isinstance(data, (bool, int, float, complex)):  # a subclass, such as an enum's member
        plain: Any = next(kind for kind in _RANKED if isinstance(data, kind))
        return _convert(plain(data), name)
    if hasattr(data, "__array__") or hasattr(data, "__array_interface__"):
        array = np.asarray(data)
        return array, dtype_of(array)
    if hasattr(data, "__len__") and hasattr(data, "__getitem__") and not hasattr(data, "keys"):
        return _stack(data, name)
    if hasattr(data, "__index__"):
        return _convert(data.__index__(), name)
    if hasattr(data, "__float__"):
        return _convert(float(data), name)
    raise RuntimeError(
        f"{name}(): Could not infer dtype of {type(data).__name__}; expected a number, an array, a "
        "tensor or nested sequences of them"
    )


def _stack(data: Sequence[Any], name: str) -> tuple[Array, DType]:
    """Return a sequence whose items may be sequences, arrays and tensors, as one array."""
    flat = _flatten(data, name) if isinstance(data, (list, tuple)) else None
    if flat is not None:
        items, shape, types = flat
        dtype = _number_dtype(types)
        return _fill(items, shape, dtype, name), dtype
    parts = [_convert(item, name) for item in data]
    if not parts:
        return np.empty(0, NATIVE[get_default_dtype()]), get_default_dtype()
    dtype = parts[0][1]
    first = parts[0][0].shape
    for item, (array, own) in zip(data, parts, strict=True):
        dtype = promote_types(dtype, own)
        if array.ndim != len(first):
            raise TypeError(
                f"{name}(): expected items of {len(first)} dimensions, got one of {array.ndim}: "
                f"{type(item).__name__}"
            )
        if array.shape != first:
            raise ValueError(
                f"{name}(): expected sequence of length {first[0]} at dim 1 (got "
                f"{array.shape[0]}): "
                f"the items have the shapes {list(first)} and {list(array.shape)}"
            )
    return np.stack([_cast(array, dtype, copy=False) for array, _ in parts]), dtype


def _cast(array: Array, dtype: DType, *, copy: bool) -> Array:
    """Return `array` in `dtype`, row by row in memory and in native byte order if copied."""
    native = NATIVE[dtype]
    if array.dtype.kind == "c" and dtype.category != COMPLEX and dtype.category != BOOL:
        array = array.real
    with np.errstate(all="ignore"):
        if copy:
            return np.array(array, dtype=native, order="C", copy=True)
        return array.astype(native, copy=False)


def on_device(array: Array, dtype: DType, device: Device) -> Any:
    """Return a tensor on `device` of an array that nobody else uses."""
    kind = kind_of(device, dtype)
    shared = kind.runtime.wrap_host(array)
    if shared is None:
        shared = kind.runtime.from_host(array, dtype, kind.device.index or 0)
    return new_tensor(shared, kind, tuple(array.shape))


def host_array(tensor: Any) -> Array:
    """Return a tensor's contents as a NumPy array; no copy where its memory is the host's."""
    return tensor._kind.runtime.to_host(tensor._array)


# --- sharing memory ---------------------------------------------------------------------------


def is_array(value: Any) -> bool:
    """Return whether `value` is a NumPy array."""
    return isinstance(value, np.ndarray)


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
    return _share(ndarray, "from_numpy")


def _share(array: Any, name: str) -> Any:
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
            f"{name}(): the given NumPy array is not writable, and tensors are; writing to the "
            "tensor "
            "will fail. Pass array.copy() to get memory of its own",
            UserWarning,
            stacklevel=4,
        )
    kind = kind_of(CPU, dtype)
    shared = kind.runtime.wrap_host(array)
    if shared is None:
        shared = kind.runtime.from_host(array, dtype, 0)
    return new_tensor(shared, kind, tuple(array.shape))


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
    return _share(array, "frombuffer")


# --- to NumPy ---------------------------------------------------------------------------------


def to_numpy(tensor: Tensor, *, force: bool = False) -> Array:
    """Return a tensor as a NumPy array that shares its memory; see ``Tensor.numpy``."""
    if force:
        return host_array(tensor.detach())
    if tensor.requires_grad:
        raise RuntimeError(
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
        )
    if tensor._kind.device is not CPU:
        raise TypeError(
            f"can't convert {tensor.device} device type tensor to numpy. Use Tensor.cpu() to copy "
            "the "
            "tensor to host memory first."
        )
    return host_array(tensor)


def to_array(tensor: Tensor, dtype: Any, copy: bool | None) -> Array:
    """Return a tensor as a NumPy array, for ``numpy.asarray(tensor)``."""
    array = to_numpy(tensor)
    if dtype is None and not copy:
        return array
    return np.array(array, dtype=dtype, copy=copy)


# --- DLPack -----------------------------------------------------------------------------------


def to_dlpack(tensor: Tensor, options: dict[str, Any]) -> Any:
    """Return a DLPack capsule of a tensor."""
    if tensor.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    return tensor._kind.runtime.to_dlpack(tensor._array, **options)


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
        If no loaded device runtime takes the producer's memory.

    Examples
    --------
    >>> import numpy
    >>> import tensorplug as tp
    >>> tp.from_dlpack(numpy.arange(3))
    tensor([0, 1, 2])
    """
    from .plugins import runtimes
    from .plugins.discovery import find_runtime

    if isinstance(producer, TensorBase):
        result: Any = producer.detach()  # type: ignore[attr-defined]
        return _placed(result, device, copy)
    if not hasattr(producer, "__dlpack_device__"):
        raise TypeError(
            f"from_dlpack(): expected an object with __dlpack__ and __dlpack_device__, got "
            f"{type(producer).__name__}"
        )
    find_runtime(CPU.type)
    wanted = tuple(producer.__dlpack_device__())
    reasons = []
    for runtime in runtimes().values():
        try:
            array = runtime.from_dlpack(producer)
            if tuple(map(int, runtime.dlpack_device(array))) != tuple(map(int, wanted)):
                continue
        except (BufferError, TypeError, ValueError, RuntimeError) as error:
            reasons.append(f"{runtime.type}: {error}")
            continue
        where = Device(CPU.type) if runtime.type == CPU.type else Device(runtime.type, wanted[1])
        kind = kind_of(where, runtime.dtype(array))
        return _placed(new_tensor(array, kind, tuple(array.shape)), device, copy)
    raise BufferError(
        f"from_dlpack(): no device takes memory of DLPack device {wanted}; tried "
        + "; ".join(reasons)
    )


def _placed(tensor: Any, device: Device | str | None, copy: bool | None) -> Any:
    if device is not None and Device(device) is not tensor.device:
        if copy is False:
            raise BufferError(
                f"from_dlpack(): the data is on {tensor.device}; reaching {device} needs a copy"
            )
        return tensor.to(device)
    return tensor.clone() if copy else tensor


# --- files and pickles
# ----------------------------------------------------------------------------------


def _owner(array: Any) -> Any:
    """Return the array whose memory `array` shows."""
    while True:
        base = array.base
        if not isinstance(base, np.ndarray):
            base = getattr(base, "base", None)  # NumPy's as_strided puts an object in between
        if not isinstance(base, np.ndarray):
            return array
        array = base


def memory_of(tensor: Any) -> tuple[Array, Any, int, tuple[int, ...]]:
    """Return the memory that a tensor shows: its owner, its bytes, offset and strides in elements.

    Tensors over the same memory have the same owner. Memory with gaps, and of another dtype than
    the tensor's, is copied.
    """
    array = host_array(tensor)
    owner = _owner(array)
    strides = array.strides
    whole = owner.flags.c_contiguous or owner.flags.f_contiguous
    if not array.size or not whole or owner.dtype != array.dtype or min(strides, default=0) < 0:
        owner = array = np.array(array, order="C", copy=True)
    offset = (array.ctypes.data - owner.ctypes.data) // array.itemsize
    steps = tuple([stride // array.itemsize for stride in array.strides])
    if not array.size:  # NumPy gives it strides that say nothing
        steps = contiguous_strides(array.shape)
    return owner, owner.ravel(order="K").view(np.uint8).data, offset, steps


def little_endian_bytes(tensor: Any) -> memoryview:
    """Return the bytes of a tensor's elements, row by row and lowest byte first."""
    array = np.ascontiguousarray(host_array(tensor))
    if sys.byteorder == "big" and array.itemsize > 1:
        plain = array.dtype.isbuiltin == 1  # NumPy swaps no bytes of a bfloat16
        array = (array if plain else array.view(np.uint16)).byteswap()
    return array.reshape(-1).view(np.uint8).data


def from_bytes(memory: bytearray | memoryview, dtype: DType, swapped: bool) -> Any:
    """Return a 1-d "cpu" tensor over bytes, whose order is changed first if `swapped`.

    Bytes at an address that does not suit the dtype are copied.
    """
    array: Array = np.frombuffer(memory, NATIVE[dtype])
    if not array.flags.aligned:
        array = array.copy()
    if dtype.category == BOOL and array.view(np.uint8).max(initial=0) > 1:
        array = array.view(np.uint8) != 0  # NumPy indexes by masks as if there were only 0 and 1
    if swapped:
        parts = array.view(NATIVE[dtype.to_real()])
        if dtype.itemsize == 2:
            parts = parts.view(np.uint16)  # NumPy swaps no bytes of a bfloat16
        parts.byteswap(inplace=True)
    return _share(array, "load")


def reduce_tensor(tensor: Tensor) -> tuple[Any, ...]:
    """Return how a tensor is pickled.

    Tensors over the same memory refer to the same array, which a pickle holds once, so they share
    memory again when it is read.
    """
    from .tensor import Tensor

    attributes = dict(tensor.__dict__)
    cls = None if type(tensor) is Tensor else type(tensor)
    metadata = (tensor.dtype, str(tensor.device), tensor.requires_grad, cls, attributes)
    if tensor.is_meta:
        return _rebuild_meta, (tuple(tensor.shape), *metadata)
    owner, _, offset, strides = memory_of(tensor)
    if not owner.flags.c_contiguous:
        owner = owner.ravel(order="K")
    return _rebuild, (owner, offset, tuple(tensor.shape), strides, *metadata)


def reduce_elements(tensor: Tensor) -> tuple[Any, ...]:
    """Return how a tensor alone is pickled: its own elements, as a buffer out of band.

    Without the rest of the memory that it may show a part of.
    """
    from pickle import PickleBuffer

    from .tensor import Tensor

    if tensor.is_meta:
        return reduce_tensor(tensor)
    array = host_array(tensor)
    if not array.flags.forc:  # gaps, or rows out of order
        array = np.array(array, order="C")
    memory = array.ravel(order="K").view(np.uint8).data
    strides = contiguous_strides(array.shape)
    if array.size:
        strides = tuple([stride // array.itemsize for stride in array.strides])
    cls = None if type(tensor) is Tensor else type(tensor)
    metadata = (tensor.dtype, str(tensor.device), tensor.requires_grad, cls, dict(tensor.__dict__))
    return _rebuild, (PickleBuffer(memory), 0, tuple(array.shape), strides, *metadata)


def seed_numpy(seed: int) -> None:
    """Seed NumPy's own global generator, which user code in a worker process may draw from."""
    np.random.seed(np.random.SeedSequence(seed).generate_state(4))  # noqa: NPY002


def _rebuild(
    owner: Any,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: DType,
    device: str,
    requires_grad: bool,
    cls: Any,
    attributes: dict[str, Any],
) -> Any:
    size = dtype.itemsize
    steps = [stride * size for stride in strides]
    array: Array = np.ndarray(shape, NATIVE[dtype], owner, offset * size, steps)
    tensor = on_device(array, dtype, Device(device))
    return _finish(tensor, requires_grad, cls, attributes)


def _rebuild_meta(
    shape: tuple[int, ...],
    dtype: DType,
    _device: str,
    requires_grad: bool,
    cls: Any,
    attributes: dict[str, Any],
) -> Any:
    from .meta import empty_meta

    return _finish(empty_meta(shape, dtype), requires_grad, cls, attributes)


def _finish(tensor: Any, requires_grad: bool, cls: Any, attributes: dict[str, Any]) -> Any:
    if cls is not None:
        tensor = tensor.as_subclass(cls)
    if requires_grad:
        tensor._state = TRACKED
    tensor.__dict__.update(attributes)
    return tensor
