"""Tensors without memory of their own, whose class computes their ops by ``__torch_dispatch__``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from ..device.device import Device
from ..device.dtypes import DType, get_default_dtype
from ..dispatch import overrides, torch_dispatch
from ..dispatch.interception import InterceptingRuntime, NoArray, intercepting_key
from ..dispatch.keys import DispatchKey, default_device, dispatch_key
from .base import bare_tensor
from .layout import layout, strided
from .shapes import Shape, as_ints, contiguous_strides

_REASON = "a tensor of a class with __torch_dispatch__ has no memory of its own"
_keys: dict[DispatchKey, DispatchKey] = {}


class _Place(NoArray):
    """The shape of such a tensor, and where its elements would lie."""

    __slots__ = ("offset", "strides")

    def __init__(self, shape: Shape, strides: Shape, offset: int) -> None:
        super().__init__(shape, _REASON)
        self.strides = strides
        self.offset = offset


class _WrapperRuntime(InterceptingRuntime):
    def __init__(self, key: DispatchKey, compute: Callable[..., Any], reason: str) -> None:
        super().__init__(key, compute, reason)
        self._behind = key.runtime

    def quiet(self) -> AbstractContextManager[Any]:
        """Return the context of the device, for backward passes that begin with such a tensor."""
        return self._behind.quiet()

    def current_queue(self, index: int) -> Any:
        """Return the queue of the device."""
        return self._behind.current_queue(index)

    def strides(self, array: Any) -> Shape:
        """Return the strides that were given."""
        found: Shape = array.strides
        return found

    def storage_offset(self, array: Any) -> int:
        """Return the offset that was given."""
        offset: int = array.offset
        return offset

    def is_contiguous(self, array: Any) -> bool:
        """Return whether the strides are those of rows."""
        return bool(array.strides == contiguous_strides(array.shape))


def make_wrapper(
    cls: Any,
    size: Any,
    strides: Any = None,
    storage_offset: int | None = None,
    memory_format: Any = None,  # noqa: ARG001
    dtype: DType | None = None,
    layout: layout = strided,
    device: Device | str | None = None,
    pin_memory: bool = False,  # noqa: ARG001
    requires_grad: bool = False,
    **_: Any,
) -> Any:
    """Return a tensor of class `cls` that has a shape, a dtype and a device, and no memory.

    Raises
    ------
    TypeError
        If the class has no ``__torch_dispatch__``.
    """
    if not overrides.dispatches(cls):
        raise TypeError(
            f"_make_wrapper_subclass(): {cls.__name__} must define __torch_dispatch__: it computes all ops"
        )
    if layout is not strided:
        raise NotImplementedError(f"_make_wrapper_subclass(): layout {layout} is not there")
    own = dispatch_key(
        default_device() if device is None else Device(device), dtype or get_default_dtype()
    )
    key = _keys.get(own)
    if key is None:
        made = intercepting_key(own, torch_dispatch.compute, _REASON, _WrapperRuntime)
        made.device = own.device  # no rule meets such a tensor beside a dense one
        key = _keys.setdefault(own, made)
    shape = as_ints(tuple(size))
    steps = contiguous_strides(shape) if strides is None else tuple(strides)
    tensor: Any = bare_tensor(cls)
    values = {
        "_key": key,
        "_array": _Place(shape, steps, storage_offset or 0),
        "_shape": shape,
        "_state": 0,
    }
    values |= dict.fromkeys(("_node", "_storage", "_extra", "_view")) | {"_writes": 0}  # fmt: skip
    for name, value in values.items():
        object.__setattr__(tensor, name, value)
    if requires_grad:
        with overrides.DisableTorchFunction():
            tensor.requires_grad_()
    return overrides.note(tensor)


def description(tensor: Any) -> tuple[Any, ...] | None:
    """Return what :func:`rebuild` makes such a tensor of, without attributes; None for other tensors."""
    if not (tensor._key.intercepts and overrides.dispatches(type(tensor))):
        return None
    place = tensor._array
    return (
        type(tensor),
        tensor._key.dtype,
        tuple(tensor._shape),
        place.strides,
        place.offset,
        strided,
        tensor._key.device,
        tensor.requires_grad,
    )


def rebuild(
    cls: Any,
    dtype: DType,
    size: Any,
    stride: Any,
    storage_offset: int,
    layout: layout,
    device: Device,
    requires_grad: bool,
) -> Any:
    """Return a tensor without memory of its own, as it was described in a pickle or a file."""
    return make_wrapper(
        cls,
        size,
        stride,
        storage_offset,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def rebuild_with_state(described: tuple[Any, ...], state: Any) -> Any:
    """Return such a tensor with its attributes."""
    tensor = rebuild(*described)
    tensor.__setstate__(state)
    return tensor


def detach(self: Any) -> Any:
    """Return a tensor over the same memory that requires no grad; without memory, as its class has it."""
    if not self._key.intercepts:
        return overrides.tensor_class.detach(self)
    return _asked("detach", self)


def item(self: Any) -> Any:
    """Return the only element of a tensor without memory, as its class has it."""
    return _asked("_local_scalar_dense", self)


def _asked(name: str, tensor: Any) -> Any:
    """Have the class of a tensor make the call of a method that is no op."""
    func, args, kwargs = torch_dispatch.spelling().named(name, (tensor,))
    return torch_dispatch.ask(torch_dispatch.dispatchers(args, kwargs), func, args, kwargs)
