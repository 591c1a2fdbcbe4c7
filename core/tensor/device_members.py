"""What torch spells per device type: ``tensor.<type>()`` and ``tensor.is_<type>``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..device.device import Device
from ..dispatch import layers
from ..dispatch.state import dispatch_state
from ..plugins import discovery, manager
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


def add_protocol(device_type: str) -> None:
    """Give Tensor the attribute by which arrays of a device type are shown to other libraries."""
    name = manager.runtimes()[device_type].array_protocol
    if not name or name in Tensor.__dict__:
        return

    def show(self: Tensor) -> Any:
        key = self._key
        if key.runtime.array_protocol != name or self.is_sparse:
            kind = "sparse" if self.is_sparse else "non-" + device_type.upper()
            raise AttributeError(f"Can't get {name} on {kind} tensor type: {self.type()}")
        if self.requires_grad:
            raise RuntimeError(
                f"Can't get {name} on Variable that requires grad. If gradients aren't required, use "
                "var.detach() to get Variable that doesn't require grad."
            )
        if dispatch_state.layers_active:
            layers.note_read(self, f"through {name}")
        return key.runtime.to_protocol(self._array)

    setattr(
        Tensor,
        name,
        property(show, doc=f"The memory of a tensor on {device_type!r}, for other libraries."),
    )
    discovery.array_protocols.setdefault(name, device_type)


add("cpu")
manager.device_listeners += [add, add_protocol]
