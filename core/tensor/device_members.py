"""What torch spells per device type: ``tensor.<type>()`` and ``tensor.is_<type>``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..device.device import Device
from ..plugins import manager
from .tensor import Tensor

#: The device types whose members Tensor has, and what is called with each that follows.
types: list[str] = []
listeners: list[Callable[[str], None]] = []


def add(device_type: str) -> None:
    """Give Tensor the members of a device type; what the class has already stays."""
    if f"is_{device_type}" in Tensor.__dict__:
        return

    def is_on_device_type(self: Tensor) -> bool:
        return self._key.device.type == device_type

    def move(
        self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None
    ) -> Tensor:
        if device is None:
            where = Device(device_type)
        elif isinstance(device, int):
            where = Device(device_type, device)
        else:
            where = Device(device)
        return self.to(where, non_blocking=non_blocking, memory_format=memory_format)

    is_on_device_type.__doc__ = f"Whether the tensor is on a {device_type!r} device."
    move.__doc__ = f"Return the tensor on a {device_type!r} device, by default the current one."
    move.__name__ = move.__qualname__ = device_type
    setattr(Tensor, f"is_{device_type}", property(is_on_device_type))
    if not hasattr(Tensor, device_type):
        setattr(Tensor, device_type, move)
    types.append(device_type)
    for listener in listeners:
        listener(device_type)


add("cpu")
manager.device_listeners.append(add)
