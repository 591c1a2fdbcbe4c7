"""The device "vault": a memory of its own, and kernels that are Python loops over it."""

from collections.abc import Iterable

from tensorplug.plugin import DeviceRuntime, Kernel, hookimpl

from .kernels import table
from .runtime import VaultRuntime


class VaultPlugin:
    """Registers the runtime and the kernels."""

    name = "second_memory"

    @hookimpl
    def tensorplug_devices(self) -> Iterable[DeviceRuntime]:
        """Return the runtime of "vault"."""
        return [VaultRuntime()]

    @hookimpl
    def tensorplug_kernels(self) -> Iterable[Kernel]:
        """Return the kernels."""
        return table


plugin = VaultPlugin()
