"""The bytes of tensors, for files and pickles."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..device.device import Device
from ..device.dtypes import BOOL, DType
from ..device.meta import empty_meta
from . import wrappers
from .base import TRACKED
from .copies import of_class
from .host import NATIVE, Array, host_array, on_device, share_array
from .shapes import contiguous_strides
from .tensor import Tensor


def _owner(array: Any) -> Any:
    """Return the array whose memory `array` shows."""
    while True:
        base = array.base
        if not isinstance(base, np.ndarray):
            base = getattr(base, "base", None)  # NumPy's as_strided puts an object in between
        if not isinstance(base, np.ndarray):
            return array
        array = base


def memory_of(
    tensor: Any, copies: dict[Any, tuple[Array, Any]] | None = None
) -> tuple[Array, Any, int, tuple[int, ...]]:
    """Return the memory that a tensor shows: its owner, its bytes, offset and strides in elements.

    Tensors over the same memory have the same owner. Memory with gaps is copied, and elements that do not lie
    whole steps of an element from its beginning.

    Parameters
    ----------
    tensor : Tensor
        The tensor.
    copies : dict, optional
        Host copies of whole memories of devices, kept from call to call, so that tensors which share one
        there have the same owner.
    """
    if copies is not None and _is_elsewhere(tensor):
        whole = tensor.untyped_storage()._tensor(tensor.dtype)
        place = (str(tensor.device), tensor.dtype, whole.data_ptr())
        if place not in copies:
            # The tensor keeps its address from being used again.
            copies[place] = host_array(whole), whole
        owner = copies[place][0]
        return owner, owner.view(np.uint8).data, tensor.storage_offset(), tensor.stride()
    array = host_array(tensor)
    owner = _owner(array)
    strides = array.strides
    reach = sum([(n - 1) * step for n, step in zip(owner.shape, owner.strides, strict=True)])
    whole = reach + owner.itemsize == owner.nbytes  # in whatever order of dimensions
    steps_in_bytes = (array.ctypes.data - owner.ctypes.data, *strides)
    apart = any([step % array.itemsize for step in steps_in_bytes])
    if not array.size or not whole or apart or min(strides, default=0) < 0:
        owner = array = np.array(array, order="C", copy=True)
    offset = (array.ctypes.data - owner.ctypes.data) // array.itemsize
    steps = tuple([stride // array.itemsize for stride in array.strides])
    if not array.size:  # NumPy gives it strides that say nothing
        steps = contiguous_strides(array.shape)
    return owner, owner.ravel(order="K").view(np.uint8).data, offset, steps


def place_of(tensor: Any) -> tuple[Any, Any]:
    """Return what all tensors over the same memory have in common, and what keeps it so."""
    if _is_elsewhere(tensor):
        whole = tensor.untyped_storage()
        return (str(tensor.device), whole.data_ptr()), whole
    # Of a device whose arrays share nothing it is not copied to the host for this.
    array = tensor._array
    owner = _owner(array) if isinstance(array, np.ndarray) else array
    return id(owner), owner


def _is_elsewhere(tensor: Any) -> bool:
    """Return whether a tensor shows memory of a device on which tensors share memory."""
    key = tensor._key
    has_views = "views" in key.runtime.capabilities and key.runtime.data_pointer(tensor._array)
    return bool(has_views and tensor.numel() and not isinstance(tensor._array, np.ndarray))


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
    if swapped and dtype.itemsize > 1:
        parts = array.view(NATIVE[dtype.to_real()])
        if dtype.itemsize == 2:
            parts = parts.view(np.uint16)  # NumPy swaps no bytes of a bfloat16
        parts.byteswap(inplace=True)
    return share_array(array, "load")


def reduce_tensor(tensor: Tensor) -> tuple[Any, ...]:
    """Return how a tensor is pickled.

    Tensors over the same memory refer to the same array, which a pickle holds once, so they share
    memory again when it is read.
    """
    described = wrappers.description(tensor)
    if described is not None:
        return wrappers.rebuild_with_state, (described, tensor.__getstate__())
    metadata = _metadata(tensor)
    if tensor.is_meta:
        return _rebuild_meta, (tuple(tensor.shape), tensor.stride(), *metadata)
    owner, _, offset, strides = memory_of(tensor)
    if not owner.flags.c_contiguous:
        owner = owner.ravel(order="K")
    return _rebuild, (owner, offset, tuple(tensor.shape), strides, *metadata)


def reduce_elements(tensor: Tensor) -> tuple[Any, ...]:
    """Return how a tensor alone is pickled: its own elements, as a buffer out of band.

    Without the rest of the memory that it may show a part of.
    """
    from pickle import PickleBuffer

    if tensor.is_meta or wrappers.description(tensor) is not None:
        return reduce_tensor(tensor)
    array = host_array(tensor)
    if not array.flags.forc:  # gaps, or rows out of order
        array = np.array(array, order="C")
    memory = array.ravel(order="K").view(np.uint8).data
    strides = contiguous_strides(array.shape)
    if array.size:
        strides = tuple([stride // array.itemsize for stride in array.strides])
    return _rebuild, (PickleBuffer(memory), 0, tuple(array.shape), strides, *_metadata(tensor))


def _metadata(tensor: Tensor) -> tuple[Any, ...]:
    cls = None if type(tensor) is Tensor else type(tensor)
    return tensor.dtype, str(tensor.device), tensor.requires_grad, cls, tensor.__getstate__()


def _rebuild(
    owner: Any,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: DType,
    device: str,
    requires_grad: bool,
    cls: Any,
    state: Any,
) -> Any:
    size = dtype.itemsize
    steps = [stride * size for stride in strides]
    array: Array = np.ndarray(shape, NATIVE[dtype], owner, offset * size, steps)
    tensor = on_device(array, dtype, Device(device))
    return _finish(tensor, requires_grad, cls, state)


def _rebuild_meta(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: DType,
    _device: str,
    requires_grad: bool,
    cls: Any,
    state: Any,
) -> Any:
    return _finish(empty_meta(shape, dtype, strides), requires_grad, cls, state)


def _finish(tensor: Any, requires_grad: bool, cls: Any, state: Any) -> Any:
    if cls is not None:
        tensor = of_class(tensor, cls)
    if requires_grad:
        tensor._state = TRACKED
    tensor.__setstate__(state)
    return tensor
