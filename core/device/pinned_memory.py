"""Host memory that is locked for fast copies to a device, where a device runtime offers it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..plugins import runtimes
from ..plugins.discovery import find_runtime
from ..tensor.host import host_array, on_device
from .device import CPU, Device
from .runtime import DeviceRuntime


def _offering(device: Any) -> Iterable[DeviceRuntime]:
    """Return the runtimes that may know locked memory."""
    if device is None:
        return list(runtimes().values())
    return [find_runtime(Device(device).type)]


def is_pinned(tensor: Any, device: Any) -> bool:
    """Return whether a tensor is in locked host memory; see ``Tensor.is_pinned``."""
    if tensor.device is not CPU:
        return False
    array = host_array(tensor)
    return any(runtime.is_pinned(array) for runtime in _offering(device))


def pin(tensor: Any, device: Any) -> Any:
    """Return a tensor in locked host memory; see ``Tensor.pin_memory``.

    Raises
    ------
    RuntimeError
        If the tensor is not on the host.
    """
    if tensor.device is not CPU:
        raise RuntimeError(
            f"cannot pin a tensor on {str(tensor.device)!r}: only memory of the host can be pinned"
        )
    array = host_array(tensor)
    for runtime in _offering(device):
        pinned = runtime.pin(array)
        if pinned is not None:
            return tensor if pinned is array else on_device(pinned, tensor.dtype, CPU)
    return tensor
