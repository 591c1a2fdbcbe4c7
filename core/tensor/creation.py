"""Tensors from Python data, arrays and buffers."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

from ..device.device import CPU, Device
from ..device.dtypes import (
    DType,
    as_dtype,
    get_default_dtype,
    int64,
)
from ..device.meta import view_of
from ..dispatch import execution, layers, op_registry, overrides
from ..dispatch.keys import default_device, dispatch_key
from ..dispatch.state import dispatch_state
from ..errors import check_flag
from . import host
from .base import TensorBase, new_tensor, storage_of
from .host import from_dlpack, from_numpy
from .host_data import from_data
from .predicates import is_storage, is_tensor
from .shapes import Shape

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = [
    "as_tensor",
    "asarray",
    "empty_of",
    "from_dlpack",
    "from_numpy",
    "frombuffer",
    "show_memory",
    "tensor",
]

AS_STRIDED = op_registry.handle("as_strided")

#: DLPack's kDLCPU and kDLCUDAHost.
_DLPACK_HOST = (1, 3)


def tensor(
    data: Any,
    *,
    dtype: DType | type | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return a new tensor with a copy of `data`; a leaf without history.

    Parameters
    ----------
    data : number, sequence, array or tensor
        Numbers, nested lists or tuples of them, NumPy arrays, tensors, arrays of other libraries on a device.
    dtype : DType, optional
        By default from the data: Python floats become the default dtype, ints int64; arrays and
        tensors keep theirs.
    device : Device or str, optional
        By default the one of `data` if that is on a device, else the default device.
    requires_grad : bool
        Whether operations on the result are recorded.
    pin_memory : bool
        Accepted for compatibility; memory is not pinned.

    Raises
    ------
    ValueError
        If nested sequences of one level differ in length.
    RuntimeError
        If a number does not fit into `dtype`, or the type of `data` is none of the above.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    >>> tp.tensor([1, 2.5], dtype=tp.float64)
    tensor([1.0000, 2.5000], dtype=tensorplug.float64)
    """
    if requires_grad is not False:
        check_flag(requires_grad, "tensor", "requires_grad")
    if dispatch_state.layers_active and overrides.modes_active():
        options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
        return overrides.handle(tensor, [], (data,), options)
    chosen = None if dtype is None else as_dtype(dtype)
    if isinstance(data, TensorBase):
        result: Any = data
        if overrides.overrides(type(data)):
            result = result.as_subclass(overrides.tensor_class)
        result = result.detach()
        result = result.to(
            device=data._key.device if device is None else device, dtype=chosen, copy=True
        )
    elif (there := _on_a_device(data, chosen)) is not None:
        where = there.device if device is None else device
        result = there.to(device=where, dtype=chosen, copy=True)
    else:
        array, chosen = from_data(data, chosen, "tensor")
        where = default_device() if device is None else Device(device)
        result = host.on_device(array, chosen, where)
        if dispatch_state.layers_active:
            layers.note_data(result, array, lambda device: host.on_device(array, chosen, device))
    return leaf(result) if requires_grad else result


def as_tensor(
    data: Any, dtype: DType | type | None = None, device: Device | str | None = None
) -> Tensor:
    """Return `data` as a tensor that shares its memory, or a copy where it has to be converted.

    Parameters
    ----------
    data : tensor, array or what :func:`tensor` takes
        A tensor keeps its history.
    dtype, device : optional
        What to convert to; by default those of `data`.

    Examples
    --------
    >>> import numpy
    >>> import tensorplug as tp
    >>> a = numpy.zeros(2)
    >>> t = tp.as_tensor(a)
    >>> a[0] = 1
    >>> t
    tensor([1., 0.], dtype=tensorplug.float64)
    """
    chosen = None if dtype is None else as_dtype(dtype)
    if is_tensor(data):
        if chosen is None and device is None:
            return data
        with overrides.DisableTorchFunction():
            return data.to(device=device, dtype=chosen)
    there = _on_a_device(data, chosen)
    if there is not None:
        return there.to(device=device, dtype=chosen)
    where = default_device() if device is None else Device(device)
    if (
        host.is_array(data)
        and where is CPU
        and data.flags.writeable
        and chosen in (None, host.dtype_of(data))
        and host.can_share(data)
    ):
        return from_numpy(data)
    return tensor(data, dtype=chosen, device=where)


def _on_a_device(data: Any, dtype: DType | None) -> Tensor | None:
    """Return a storage, or another library's array unless on the host, as a tensor over its memory."""
    if host.is_array(data) or isinstance(data, (list, tuple, int, float)):
        return None
    if is_storage(data):
        return _of_storage(data, dtype)
    if hasattr(data, "__dlpack_device__"):
        key = int(data.__dlpack_device__()[0])
        return None if key in _DLPACK_HOST else from_dlpack(data)
    return host.from_protocols(data)


def _of_storage(storage: Any, dtype: DType | None) -> Tensor:
    """Return the elements of a storage, of which bytes alone can be read as any dtype."""
    own = getattr(storage, "dtype", dtype or int64)
    if dtype not in (None, own):
        raise RuntimeError(
            f"Expected a Storage of type {dtype.name} or an UntypedStorage, but got {own.name}"
        )
    elements: Tensor = storage.untyped()._tensor(own)
    return elements


def asarray(
    obj: Any,
    *,
    dtype: DType | type | None = None,
    device: Device | str | None = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """Return `obj` as a tensor, sharing its memory where that is possible and allowed.

    Parameters
    ----------
    obj : tensor, array, object with DLPack or the buffer protocol, number or sequence
        The data.
    dtype, device : optional
        What to convert to.
    copy : bool, optional
        True to copy in any case; False to raise rather than copy.
    requires_grad : bool, optional
        Whether the result requires grad; if False it has no history. By default a tensor's stays as it is.

    Raises
    ------
    ValueError
        If `copy` is False and a copy is needed.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.asarray([1, 2])
    tensor([1, 2])
    """
    chosen = None if dtype is None else as_dtype(dtype)
    shared: Any = None
    if isinstance(obj, TensorBase):
        shared = obj
    elif host.is_array(obj) and host.can_share(obj):
        shared = from_numpy(obj)
    elif host.is_capsule(obj) or (hasattr(obj, "__dlpack__") and not host.is_array(obj)):
        shared = from_dlpack(obj)
    elif (there := _on_a_device(obj, chosen)) is not None:
        shared = there
    elif isinstance(obj, (bytes, bytearray, memoryview)):
        shared = frombuffer(obj, dtype=chosen or get_default_dtype())
    if shared is None:
        if copy is False:
            if host.is_array_scalar(obj):
                raise RuntimeError(
                    "asarray(): can't alias NumPy scalars. Either remove copy=False or transform it in a "
                    "ndarray."
                )
            raise ValueError(
                "asarray(): can't alias arbitrary sequence into a tensor: nothing can share the memory "
                f"of a {type(obj).__name__}"
            )
        return tensor(obj, dtype=chosen, device=device, requires_grad=bool(requires_grad))
    result: Any = shared.to(device=device, dtype=chosen)
    if copy is False and result is not shared:
        what, own, wanted = "dtype", shared.dtype, result.dtype
        if shared.device != result.device:
            what, own, wanted = "device", shared.device, result.device
        link = ("with dtype", "into dtype") if what == "dtype" else ("from device", "to")
        raise ValueError(
            f"asarray(): can't alias tensor {link[0]} '{own}' {link[1]} '{wanted}'; leave copy= out"
        )
    if copy and result is shared:
        result = result.clone()
    if requires_grad:
        return result if result.requires_grad else leaf(result)
    return result.detach() if requires_grad is False and result.requires_grad else result


def frombuffer(
    buffer: Any,
    *,
    dtype: DType,
    count: int = -1,
    offset: int = 0,
    requires_grad: bool = False,
) -> Tensor:
    """Return a 1-d tensor over the memory of an object with the buffer protocol.

    Parameters
    ----------
    buffer : object
        ``bytearray``, ``memoryview``, ``array.array`` and the like.
    dtype : DType
        How to read the bytes.
    count : int
        How many elements; negative for all that fit.
    offset : int
        How many bytes to skip.

    Raises
    ------
    ValueError
        If the object has no buffer, or the sizes do not fit.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.frombuffer(bytearray(b"abc"), dtype=tp.uint8)
    tensor([97, 98, 99], dtype=tensorplug.uint8)
    """
    result = host.from_buffer(buffer, as_dtype(dtype), count, offset)
    return leaf(result) if requires_grad else result


def leaf(result: Any) -> Any:
    """Return a new tensor made to require grad, which its dtype has to allow."""
    if not result._key.is_differentiable:
        raise RuntimeError(
            "Only Tensors of floating point and complex dtype can require gradients, got "
            f"{result.dtype}"
        )
    return result.requires_grad_()


def empty_of(shape: Shape, dtype: DType, device: Device) -> Any:
    """Return a tensor whose elements may hold anything."""
    key = dispatch_key(device, dtype)
    made = new_tensor(key.runtime.empty(shape, dtype, key.device.index or 0), key, shape)
    if dispatch_state.inference:
        dispatch_state.gradient.mark_if_inference(made)
    return made


def show_memory(memory: Any, shape: Shape, strides: Shape, offset: int) -> Any:
    """Return a tensor, no view to autograd, that shows a 1-d tensor's memory in given strides.

    Raises
    ------
    ValueError
        If it would reach beyond the memory.
    """
    count, reach = _extent(tuple(shape), tuple(strides))
    if reach < 0 or offset < 0:
        raise ValueError(
            f"sizes {list(shape)}, strides {list(strides)}, offset {offset} are no layout"
        )
    if count and offset + reach >= math.prod(memory._shape):
        raise ValueError(
            f"sizes {list(shape)}, strides {list(strides)}, offset {offset} reach element "
            f"{offset + reach} of a memory of {math.prod(memory._shape)}"
        )
    key = memory._key
    if not count:
        return empty_of(shape, key.dtype, key.device)
    op = AS_STRIDED
    if key.is_meta:
        array = view_of(op, memory._array, (shape, strides, offset))
    else:
        array = execution.kernel_of(op, key)(memory._array, shape, strides, offset)
    result = new_tensor(array, key, shape)
    result._storage = storage_of(memory)
    if dispatch_state.inference:
        dispatch_state.gradient.mark_if_inference(result)
    return result


@functools.lru_cache(maxsize=1024)  # of small tensors it takes longer than the rest
def _extent(shape: Shape, strides: Shape) -> tuple[int, int]:
    """Return how many elements a layout has, and how far the last one is from the first; -1 for no layout."""
    if len(shape) != len(strides) or min((*shape, *strides), default=0) < 0:
        return 0, -1
    reach = sum([(n - 1) * step for n, step in zip(shape, strides, strict=True)])
    return math.prod(shape), max(reach, 0)
