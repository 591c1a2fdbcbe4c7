"""Dispatch keys: the (device, dtype) pair of a tensor, interned, with its table of kernels.

Dispatch is one list look-up: ``key.kernels[op.index]``. A slot that nobody has used yet holds a
resolver stub that finds the kernel, puts it into the slot and calls it, so a call has no miss check
and a late registration just puts stubs back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..device.device import CPU, Device, default, unlisted
from ..device.dtypes import ALL_DTYPES, FLOATING, DType
from ..device.runtime import DeviceRuntime, RefusingRuntime, RemovedRuntime
from ..device.scalars import fitting
from ..errors import DeviceNotAvailableError, DTypeNotAvailableError
from ..locks import renewed

if TYPE_CHECKING:  # these need the keys
    from .op import Op
    from .state import DispatchState

_SCALARS_KEPT = 1024

#: Guards everything that changes when a plugin comes or goes: plugins, ops, kernels, these tables. One
#: lock, because each of them is changed on behalf of another, and two would be taken in either order.
lock = renewed(threading.RLock())


class DispatchKey:
    """One (device, dtype) pair; there is exactly one object per pair.

    Attributes
    ----------
    kernels : list
        By op index: a callable over raw arrays and plain values.
    results : list
        By op index, of pointwise ops: the dispatch key of the result; None before the first use.
    writers : list
        By op index, of pointwise ops: the kernel if it takes ``out=``, else None.
    intercepts : bool
        Whether tensors compute ops themselves, see :mod:`.interception`.
    """

    __slots__ = (
        "array_type", "as_array", "device", "dtype", "intercepts", "is_differentiable", "is_meta",
        "kernels", "results", "runtime", "scalars", "writers",
    )  # fmt: skip

    def __init__(self, device: Device, dtype: DType, runtime: DeviceRuntime) -> None:
        self.device = device
        self.dtype = dtype
        self.runtime = runtime
        self.array_type = runtime.array_type
        self.as_array = runtime.as_array
        self.is_differentiable = dtype.category >= FLOATING
        self.is_meta = device.type == "meta"
        self.intercepts = False
        self.kernels: list[Callable[..., Any]] = []
        self.results: list[DispatchKey | None] = []
        self.writers: list[Callable[..., Any] | None] = []
        self.scalars: dict[type[Any], dict[Any, Any]] = {}

    def scalar(self, value: Any) -> Any:
        """Return a cached 0-d array of a Python number; it must never be written to.

        Raises
        ------
        RuntimeError, OverflowError
            If the dtype cannot hold the number.
        """
        # By type, as what an int comes to may differ from what an equal float does. 0.0 and -0.0 are equal
        # as keys, and so are complex numbers with signed zeros; nan equals nothing.
        known = self.scalars.get(type(value))
        if known is None:
            known = self.scalars[type(value)] = {}
        key = value
        if (not value and not isinstance(value, int)) or (
            isinstance(value, complex) and value == value
        ):
            key = repr(value)
        array = known.get(key)
        if array is None:
            if len(known) >= _SCALARS_KEPT:
                known.clear()
            array = self.runtime.scalar(
                fitting(value, self.dtype), self.dtype, self.device.index or 0
            )
            known[key] = array
        return array

    def with_dtype(self, dtype: DType) -> DispatchKey:
        """Return the key of the same device and another dtype."""
        return self if dtype is self.dtype else dispatch_key(self.device, dtype)

    def __repr__(self) -> str:
        return f"DispatchKey({self.device}, {self.dtype.name})"

    def __reduce__(self) -> tuple[Any, tuple[Device, DType]]:
        return dispatch_key, (self.device, self.dtype)


_KEYS: dict[tuple[Device, DType], DispatchKey] = {}

#: Every op that was ever registered, by its index in the tables.
ops: list[Op] = []

# The only one, put here by its module, which needs this one.
dispatch_state: DispatchState


def canonical_device(device: Device) -> Device:
    """Return `device` with the index that its runtime gives it; load its plugin.

    "cpu" and "meta" have one device each, which carries no index, as in torch.

    Raises
    ------
    DeviceNotAvailableError
        If no plugin serves the type, or there is no device of that index.
    """
    runtime = dispatch_state.find_runtime(device.type)
    reason = unavailable_reason(runtime)
    if reason is not None:
        raise DeviceNotAvailableError(f"device {device} cannot be used: {reason}")
    count = runtime.device_count()
    if count < 1:
        raise DeviceNotAvailableError(f"device {device} cannot be used: no device was found")
    index = runtime.current_device() if device.index is None else device.index
    if index >= count:
        raise DeviceNotAvailableError(
            f"device {device} does not exist: {runtime.type} has {count} device(s), "
            f"numbered 0 to {count - 1}"
        )
    return Device(device.type) if device.type in ("cpu", "meta") else Device(device.type, index)


def unavailable_reason(runtime: DeviceRuntime) -> str | None:
    """Return why no device of a runtime can be used, or None; a runtime that fails to tell cannot be."""
    try:
        return runtime.unavailable_reason()
    except Exception as error:
        return f"its plugin's unavailable_reason() raised {type(error).__name__}: {error}"


#: What converts to the dtype that devices without the wide one have.
_NARROWER = {"float64": "call .float()", "complex128": "call .to(tensorplug.complex64)"}


def dispatch_key(device: Device, dtype: DType) -> DispatchKey:
    """Return the dispatch key of `device` and `dtype`."""
    key = _KEYS.get((device, dtype))
    if key is not None:
        return key
    exact = canonical_device(device)
    if exact is not device:
        # An index-less device follows the runtime's current one: never interned.
        return dispatch_key(exact, dtype)
    with lock:
        key = _KEYS.get((device, dtype))
        if key is None:
            runtime = dispatch_state.find_runtime(device.type)
            has = ALL_DTYPES if runtime.dtypes is None else runtime.dtypes
            if dtype not in has:
                known = ", ".join([known.name for known in ALL_DTYPES if known in has])
                narrow = _NARROWER.get(dtype.name, "")
                fix = f"; {narrow} first" if narrow else ""
                raise DTypeNotAvailableError(
                    f"device {device} has no dtype {dtype.name}; it has {known}{fix}"
                )
            key = DispatchKey(device, dtype, runtime)
            extend_tables(key)  # before any other thread can see the key
            _KEYS[device, dtype] = key
    return key


def extend_tables(key: DispatchKey) -> None:
    """Give `key` an unresolved slot for every op that it has none for."""
    for index in range(len(key.kernels), len(ops)):
        key.kernels.append(_unresolved(index, key))
        key.results.append(None)
        key.writers.append(None)


_reset_listeners: list[Callable[[], None]] = []


def on_reset(listener: Callable[[], None]) -> None:
    """Call `listener()` whenever the tables are reset (caches of resolutions depend on it)."""
    _reset_listeners.append(listener)


def reset_tables() -> None:
    """Make every slot of every key resolve again at its next use."""
    with lock:
        for listener in _reset_listeners:
            listener()
        for key in list(_KEYS.values()):
            extend_tables(key)
            for index in range(len(key.kernels)):
                key.writers[index] = None
                key.kernels[index] = _unresolved(index, key)


def _unresolved(index: int, key: DispatchKey) -> Callable[..., Any]:
    runtime = key.runtime
    if isinstance(runtime, RefusingRuntime):
        return runtime.refuse
    return dispatch_state.make_stub(index, key)


def refusing_key(key: DispatchKey, runtime: RefusingRuntime) -> DispatchKey:
    """Return a key that looks like another but whose kernels raise, as all of `runtime` does."""
    with lock:
        device = unlisted(key.device)
        refusing = DispatchKey(device, key.dtype, runtime)
        refusing.as_array = runtime.refuse
        refusing.is_meta = False  # there, ops would ask no kernel
        extend_tables(refusing)
        _KEYS[device, key.dtype] = refusing
    return refusing


def forget_device(device_type: str, plugin: str) -> None:
    """Drop the keys of a device type whose runtime went away with a plugin.

    Tensors that live there keep their key: it can tell shape and dtype, everything else raises. Its
    device is another one than a device of the same name that is registered later.
    """
    with lock:
        for key in [key for key in _KEYS if key[0].type == device_type]:
            tensor_key = _KEYS.pop(key)
            runtime = RemovedRuntime(tensor_key.runtime, plugin)
            tensor_key.runtime = runtime
            tensor_key.as_array = runtime.refuse
            tensor_key.device = unlisted(tensor_key.device)
            tensor_key.scalars.clear()
            for index in range(len(tensor_key.kernels)):
                tensor_key.writers[index] = None
                tensor_key.kernels[index] = runtime.refuse


def all_keys() -> list[DispatchKey]:
    """Return every key in use so far."""
    return list(_KEYS.values())


def keys_of_device(device: Device) -> list[DispatchKey]:
    """Return the keys of all dtypes of a device."""
    return [dispatch_key(device, dtype) for dtype in ALL_DTYPES]


def default_key(dtype: DType) -> DispatchKey:
    """Return the key of `dtype` on the default device."""
    return dispatch_key(default_device(), dtype)


def made_key(values: tuple[Any, ...]) -> Any:
    """Return the key of what a call without tensors makes, if both its dtype and its device are told."""
    dtype: Any = None
    device: Any = None
    for value in values:
        if isinstance(value, DType):
            dtype = value
        elif isinstance(value, Device):
            device = value
    return None if dtype is None or device is None else dispatch_key(device, dtype)


def default_device() -> Device:
    """Return the device on which tensors are made where none is named."""
    return default.device


def set_default_device(device: Device | str | None) -> None:
    """Make `device` the one on which this thread makes tensors where none is named; None means "cpu".

    The device's plugin is loaded now, so an error appears here rather than at the next tensor.
    """
    default.device = CPU if device is None else canonical_device(Device(device))
