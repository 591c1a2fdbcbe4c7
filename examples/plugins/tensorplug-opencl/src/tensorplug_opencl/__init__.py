"""The device "opencl" for tensorplug: memory and kernels of its own, on any OpenCL 1.2 device."""

from __future__ import annotations

from collections.abc import Iterable

from tensorplug.plugin import DeviceRuntime, Kernel, hookimpl, host_kernels

from .kernels import all_kernels
from .runtime import OpenCLRuntime

__all__ = ["plugin"]


class OpenCLPlugin:
    """Registers the runtime and the kernels."""

    name = "opencl"

    def __init__(self) -> None:
        self.runtime = OpenCLRuntime()

    @hookimpl
    def tensorplug_devices(self) -> Iterable[DeviceRuntime]:
        """Return the runtime of "opencl"."""
        return [self.runtime]

    @hookimpl
    def tensorplug_kernels(self) -> Iterable[Kernel]:
        """Return the kernels: OpenCL's, and the host's for the primitives without one."""
        return [*host_kernels(self.runtime, priority=-1), *all_kernels(self.runtime)]


plugin = OpenCLPlugin()
