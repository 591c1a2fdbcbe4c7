"""The device type that a program computes on if it has one beside the CPU, whichever it is."""

from __future__ import annotations

from typing import Any

from tensorplug.core import plugins
from tensorplug.core.contexts import OwnContext, Steps
from tensorplug.core.device.device import Device
from tensorplug.core.device.dtypes import ALL_DTYPES
from tensorplug.core.plugins import entry_points

from ._devices import WELL_KNOWN, DeviceModule

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "device_count",
    "device_index",
    "empty_cache",
    "empty_host_cache",
    "get_device_capability",
    "get_memory_info",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]

_HOST = ("cpu", "meta", *entry_points.NO_DEVICES)


def _module() -> DeviceModule | None:
    """Return the functions of the device type: a well-known one first, then as plugins were found."""
    served = [found.device for found in plugins.installed()]
    for name in dict.fromkeys([*WELL_KNOWN, *plugins.runtimes(), *served]):
        if name not in _HOST and DeviceModule.of(name).is_available():
            return DeviceModule.of(name)
    return None


def _needed(what: str) -> DeviceModule:
    found = _module()
    if found is None:
        raise RuntimeError(
            f"accelerator.{what}(): Cannot access accelerator device when none is available; "
            "tensorplug doctor says what is missing"
        )
    return found


def is_available() -> bool:
    """Return whether a device beside the CPU can be used.

    Examples
    --------
    >>> import tensorplug as tp
    >>> device = tp.accelerator.current_accelerator() if tp.accelerator.is_available() else "cpu"
    """
    return _module() is not None


def device_count() -> int:
    """Return the number of devices; 0 where there are none."""
    found = _module()
    return found.device_count() if found else 0


def current_accelerator(check_available: bool = False) -> Device | None:  # noqa: ARG001
    """Return the device type as a device without an index, None where there is none."""
    found = _module()
    return Device(found._type) if found else None


def current_device_index() -> int:
    """Return the index of the current device."""
    return _needed("current_device_index").current_device()


def set_device_index(device: Any, /) -> None:
    """Make a device the current one of this thread."""
    _needed("set_device_index").set_device(device)


class device_index(OwnContext):
    """Make a device the current one within a ``with`` block; None leaves it."""

    def __init__(self, device: int | None) -> None:
        self._within = None if device is None else _needed("device_index").device(device)

    def _steps(self) -> tuple[Steps, Steps]:
        return ((), ()) if self._within is None else self._within._steps()


def synchronize(device: Any = None, /) -> None:
    """Wait until everything queued on a device is done."""
    _needed("synchronize").synchronize(device)


def empty_cache() -> None:
    """Give cached memory back; nothing to do where no device is."""
    found = _module()
    if found is not None:
        found.empty_cache()


empty_host_cache = empty_cache


def memory_stats(device: Any = None, /) -> dict[str, int]:
    """Return what a device's allocator counts."""
    return _needed("memory_stats").memory_stats(device)


def memory_reserved(device: Any = None, /) -> int:
    """Return the bytes that a device's allocator holds now."""
    return _needed("memory_reserved").memory_reserved(device)


def max_memory_reserved(device: Any = None, /) -> int:
    """Return the most bytes that a device's allocator held at a time."""
    return _needed("max_memory_reserved").max_memory_reserved(device)


def reset_peak_memory_stats(device: Any = None, /) -> None:
    """Count the most bytes anew from now on."""
    _needed("reset_peak_memory_stats").reset_peak_memory_stats(device)


def get_memory_info(device: Any = None, /) -> tuple[int, int]:
    """Return the free bytes of a device, and all of them."""
    found: tuple[int, int] = _needed("get_memory_info").mem_get_info(device)
    return found


def get_device_capability(device: Any = None, /) -> dict[str, Any]:
    """Return what a device can do: the dtypes that its tensors may have."""
    _needed("get_device_capability").get_device_properties(device)
    return {"supported_dtypes": set(ALL_DTYPES)}


def memory_allocated(device: Any = None, /) -> int:
    """Return the bytes that tensors take now on a device."""
    return _needed("memory_allocated").memory_allocated(device)


def max_memory_allocated(device: Any = None, /) -> int:
    """Return the most bytes that tensors took at a time on a device."""
    return _needed("max_memory_allocated").max_memory_allocated(device)


def current_stream(device: Any = None, /) -> Any:
    """Return the current stream of a device."""
    return _needed("current_stream").current_stream(device)


def set_stream(stream: Any, /) -> None:
    """Make a stream the current one of its device."""
    _needed("set_stream").set_stream(stream)


current_device_idx, set_device_idx = current_device_index, set_device_index
