"""How tensors get elsewhere: to devices, dtypes and classes, to other libraries, into copies and pickles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..device.device import Device
from ..device.dtypes import DType, as_dtype, uint8
from ..dispatch import op_registry
from ..dispatch.keys import canonical_device
from ..dispatch.state import dispatch_state
from .autograd_members import Differentiation
from .base import TRACKED, TensorBase, bare_tensor, extra_of, storage_of
from .creation import type_name, type_named
from .host import from_array, to_array, to_dlpack, to_numpy

if TYPE_CHECKING:
    from .tensor import Tensor

CAST = op_registry.handle("cast")
TO_DEVICE = op_registry.handle("to_device")


class Exchange(Differentiation):
    """Base of Tensor with what makes other things of it."""

    __slots__ = ()

    def to(self: Any, *args: Any, **kwargs: Any) -> Tensor:
        """Return the tensor on another device and/or with another dtype.

        ``to(dtype)``, ``to(device)``, ``to(device, dtype)``, ``to(other)``, each with ``non_blocking``,
        ``copy`` and ``memory_format``. The tensor itself is returned if nothing changes and `copy` is
        False. With ``non_blocking=True`` a copy between the host and a device may be under way at the
        return: synchronize the device before the host reads the result, or writes over a source in pinned
        memory.
        """
        if len(args) == 1 and not kwargs and type(args[0]) is DType:
            return self if args[0] is self._key.dtype else CAST.call(self, args[0])
        if "memory_format" in kwargs:
            chosen = kwargs.pop("memory_format")
            if chosen is not None:
                from ..ops.copying import to_format  # on first use: it needs this module

                return to_format(self, chosen, *_parse_to(args, kwargs))
        device, dtype, copy, non_blocking = _parse_to(args, kwargs)
        result = self
        if dtype is not None and dtype is not self._key.dtype:
            result = CAST.call(result, dtype)
        if device is not None:
            target = canonical_device(device)
            if target is not result._key.device:
                result = TO_DEVICE.call(result, target, *((True,) if non_blocking else ()))
        return result.clone() if copy and result is self else result

    def to_device(self, device: Device | str, /, *, stream: Any = None) -> Tensor:
        """Return the tensor on another device, as the array API standard spells it.

        Raises
        ------
        ValueError
            If a `stream` is named; the current one of the device is used.
        """
        if stream is not None:
            raise ValueError(f"to_device(): stream must be None, got {stream!r}")
        return self.to(device)

    def cpu(self: Any, memory_format: Any = None) -> Tensor:
        """Return the tensor on the "cpu" device."""
        return self.to("cpu", memory_format=memory_format)

    def type(self: Any, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Return the name of the tensor's type, or the tensor converted to `dtype`."""
        if dtype is None:
            return type_name(self)
        chosen, device = type_named(dtype)
        return self.to(device=device, dtype=chosen, non_blocking=non_blocking)

    def type_as(self, tensor: Tensor) -> Tensor:
        """Return the tensor with the dtype and on the device of another."""
        return self.to(tensor)

    def numpy(self: Any, *, force: bool = False) -> Any:
        """Return a NumPy array that shares the tensor's memory.

        Parameters
        ----------
        force : bool
            Detach and copy to the host first, so that any tensor can be converted.
        """
        return to_numpy(self, force=force)

    def __array__(self: Any, dtype: Any = None, copy: bool | None = None) -> Any:
        return to_array(self, dtype, copy)

    def __array_wrap__(
        self, array: Any, context: Any = None, return_scalar: bool = False
    ) -> Tensor:
        """Return what a function of NumPy computed of a tensor as one; truth values become uint8."""
        return from_array(array, flags=uint8)

    def __dlpack__(
        self: Any,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        options = {
            "stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy,
        }  # fmt: skip
        return to_dlpack(self, {name: v for name, v in options.items() if v is not None})

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._key.runtime.dlpack_device(self._array)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return dispatch_state.array_namespace(api_version)

    def as_subclass(self, cls: Any) -> Any:
        """Return a tensor of class `cls` over the same memory and in the same place of the graph."""
        if not issubclass(cls, Exchange):
            raise TypeError(f"as_subclass(): expected a subclass of Tensor, got {cls!r}")
        result = bare_tensor(cls)
        for name in TensorBase.__slots__:
            setattr(result, name, getattr(self, name))
        return result

    def __copy__(self) -> Tensor:
        result = self.as_subclass(type(self))
        result._storage = storage_of(self)
        result.__dict__.update(self.__dict__)
        return result

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                "protocol at the moment; use .detach().clone()"
            )
        if id(self) in memo:
            return memo[id(self)]
        from copy import deepcopy

        clone = self.detach().clone()
        result: Tensor = clone if type(self) is type(clone) else clone.as_subclass(type(self))
        memo[id(self)] = result
        if self.requires_grad:
            result._state = TRACKED
        if self.grad is not None:
            extra_of(result).grad = deepcopy(self.grad, memo)
        result.__dict__.update(deepcopy(self.__dict__, memo))
        return result

    def __reduce_ex__(self: Any, protocol: Any) -> Any:
        from .host_memory import reduce_tensor  # on first use: saves import time

        return reduce_tensor(self)


def _parse_to(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Device | None, DType | None, bool, bool]:
    """Return (device, dtype, copy, non_blocking) of a call of ``Tensor.to``."""
    device: Any = kwargs.pop("device", None)
    dtype: Any = kwargs.pop("dtype", None)
    other: Any = kwargs.pop("other", None)
    copy = kwargs.pop("copy", False)
    non_blocking = kwargs.pop("non_blocking", False)
    if kwargs:
        raise TypeError(f"to() got an unexpected keyword argument {next(iter(kwargs))!r}")
    flags = []
    for arg in args:
        if isinstance(arg, TensorBase):
            other = arg
        elif isinstance(arg, bool):
            flags.append(arg)
        elif isinstance(arg, (Device, str)):
            device = arg
        elif isinstance(arg, DType) or arg in (bool, int, float, complex):
            dtype = arg
        elif arg is not None:
            raise TypeError(
                f"to(): expected a device, a dtype or a tensor, got {arg!r} of type {type(arg).__name__}"
            )
    if flags:
        non_blocking = flags[0]
    if len(flags) > 1:
        copy = flags[1]
    if other is not None:
        device, dtype = other.device, other.dtype
    return (
        None if device is None else Device(device),
        None if dtype is None else as_dtype(dtype),
        bool(copy),
        bool(non_blocking),
    )
