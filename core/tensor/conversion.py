"""What ``Tensor.to`` does: a tensor on another device, with another dtype, or in another order of memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..device.device import CPU, Device
from ..device.dtypes import DType, as_dtype
from ..dispatch.keys import canonical_device
from ..dispatch.op_registry import handle
from ..errors import check_flag
from .base import TensorBase
from .layout import (
    check_format,
    preserve_format,
    strides_like,
    strides_of,
    suggested_format,
)
from .shapes import Shape, contiguous_strides

if TYPE_CHECKING:
    from .tensor import Tensor

CAST = handle("cast")
CLONE = handle("clone")
CLONE_STRIDED = handle("clone_strided")
TO_DEVICE = handle("to_device")


def converted(tensor: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """Return what ``tensor.to(*args, **kwargs)`` does."""
    device, dtype, copy, non_blocking, chosen = _read_to(args, kwargs)
    own = tensor._key
    if chosen is not None:
        return to_format(tensor, chosen, device, dtype, copy, non_blocking)
    result = tensor
    if dtype is not None and dtype is not own.dtype:
        result = CAST.call(result, dtype)
    if device is not None and device is not own.device:
        target = canonical_device(device)
        if target is not own.device:
            result = TO_DEVICE.call(result, target, *((True,) if non_blocking else ()))
    return result.clone() if copy and result is tensor else result


# Device, dtype, copy, non_blocking and memory format of a call of ``Tensor.to``.
_Parsed = tuple[Device | None, DType | None, bool, bool, Any]


def _read_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Parsed:
    """Return what the arguments of ``Tensor.to`` ask for; those that were read before are known."""
    key = (
        *args,
        *map(type, args),
        *kwargs.items(),
        *map(type, kwargs.values()),
    )  # 1 is equal to True
    try:
        known = _read.get(key)
    except TypeError:  # no key, and no argument either
        known = None
    if known is None:
        known = _parse_to(args, kwargs)
        for value in (*args, *kwargs.values()):
            if isinstance(value, TensorBase):  # it would be kept alive
                return known
        if len(_read) >= _KEPT:
            _read.clear()
        _read[key] = known
    return known


_read: dict[tuple[Any, ...], _Parsed] = {}
_KEPT = 256


def _parse_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Parsed:
    named = dict(kwargs)
    rest = list(args)
    device: Any = named.pop("device", None)
    dtype: Any = named.pop("dtype", None)
    other: Any = named.pop("other", None)
    if rest and isinstance(rest[0], TensorBase):
        other = rest.pop(0)
    else:
        if rest and (rest[0] is None or isinstance(rest[0], (Device, str))):
            device = rest.pop(0)
        if rest and (rest[0] is None or isinstance(rest[0], DType) or rest[0] in _PYTHON_TYPES):
            dtype = rest.pop(0)
    flags = dict(zip(("non_blocking", "copy"), rest, strict=False))
    if len(rest) > len(flags) or flags.keys() & named.keys():
        raise TypeError(
            f"to() takes a device and a dtype, or a tensor, and non_blocking and copy, each once; got {args}"
        )
    for arg in rest:
        if not isinstance(arg, bool):
            raise TypeError(
                f"to(): expected a device, a dtype or a tensor, got {arg!r} of type {type(arg).__name__}"
            )
    for flag in ("non_blocking", "copy"):
        flags[flag] = named.pop(flag, flags.get(flag, False))
        check_flag(flags[flag], "to", flag)
    memory_format = named.pop("memory_format", None)
    if named:
        raise TypeError(f"to() got an unexpected keyword argument {next(iter(named))!r}")
    if other is not None:
        device, dtype = other.device, other.dtype
    return (
        None if device is None else Device(device),
        None if dtype is None else as_dtype(dtype),
        flags["copy"],
        flags["non_blocking"],
        memory_format,
    )


_PYTHON_TYPES = (bool, int, float, complex)


def to_format(
    input: Any,
    memory_format: Any,
    device: Device | None,
    dtype: DType | None,
    copy: bool = False,
    non_blocking: bool = False,
) -> Any:
    """Return what ``Tensor.to`` does where it is given a memory format."""
    check_format(memory_format, "to")
    own = input._key
    shape: Shape = input._shape
    kept = memory_format is preserve_format
    # Raises before anything is copied.
    stride = None if kept else strides_of(shape, memory_format, own, "to")
    if device is None or device is own.device or canonical_device(device) is own.device:
        converts = dtype is not None and dtype is not own.dtype
        in_rows = stride is None and not (kept and 1 in shape)
        if converts and in_rows and own.runtime.is_contiguous(input._array):
            return CAST.call(input, dtype)  # in rows, as the input
        result = CAST.call(input, dtype) if converts else input
    else:
        # What comes to the host may be copied once more there, for which it has to have arrived.
        waits = not non_blocking or device.type == CPU.type
        result = input.to(device=device, dtype=dtype, non_blocking=not waits)
        stride = None if kept else strides_of(shape, memory_format, result._key, "to")
    if (
        result is input
        and not copy
        and (kept or suggested_format(shape, own.runtime.strides(input._array)) is memory_format)
    ):
        return input
    if kept:
        stride = strides_like(input, None, "to")
    if result is not input:
        lies = result._key.runtime.strides(result._array)
        if lies == (contiguous_strides(shape) if stride is None else stride):
            return result
    return CLONE.call(result) if stride is None else CLONE_STRIDED.call(result, stride)
