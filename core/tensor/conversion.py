"""What ``Tensor.to`` does: a tensor on another device, with another dtype, or in another order of memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..device.device import CPU, Device
from ..device.dtypes import DType, as_dtype
from ..dispatch.keys import canonical_device
from ..dispatch.op_registry import handle
from .base import TensorBase
from .layout import (
    check_format,
    format_strides,
    preserve_format,
    strides_like,
    strides_of,
    suggested_format,
)
from .shapes import contiguous_strides

if TYPE_CHECKING:
    from .tensor import Tensor

CAST = handle("cast")
CLONE = handle("clone")
CLONE_STRIDED = handle("clone_strided")
TO_DEVICE = handle("to_device")


def converted(tensor: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """Return what ``tensor.to(*args, **kwargs)`` does."""
    if "memory_format" in kwargs:
        chosen = kwargs.pop("memory_format")
        if chosen is not None:
            return _to_format(tensor, chosen, *_parse_to(args, kwargs))
    device, dtype, copy, non_blocking = _parse_to(args, kwargs)
    result = tensor
    if dtype is not None and dtype is not tensor._key.dtype:
        result = CAST.call(result, dtype)
    if device is not None:
        target = canonical_device(device)
        if target is not result._key.device:
            result = TO_DEVICE.call(result, target, *((True,) if non_blocking else ()))
    return result.clone() if copy and result is tensor else result


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


def _to_format(
    input: Any,
    memory_format: Any,
    device: Device | None,
    dtype: DType | None,
    copy: bool,
    non_blocking: bool,
) -> Any:
    """Return what ``Tensor.to`` does where it is given a memory format."""
    check_format(memory_format, "to")
    shape = input._shape
    kept = memory_format is preserve_format
    rows = contiguous_strides(shape)
    if not kept:
        format_strides(shape, memory_format, "to")  # raises before anything is copied
    own = input._key
    if device is None or canonical_device(device) is own.device:
        result = input if dtype is None or dtype is own.dtype else CAST.call(input, dtype)
    else:
        # What comes to the host may be copied once more there, for which it has to have arrived.
        waits = not non_blocking or device.type == CPU.type
        result = input.to(device=device, dtype=dtype, non_blocking=not waits)
    if (
        result is input
        and not copy
        and (kept or suggested_format(shape, input.stride()) is memory_format)
    ):
        return input
    stride = (
        strides_like(input, None, "to")
        if kept
        else strides_of(shape, memory_format, result._key, "to")
    )
    if result is not input and result.stride() == (stride or rows):
        return result
    return CLONE.call(result) if stride is None else CLONE_STRIDED.call(result, stride)
