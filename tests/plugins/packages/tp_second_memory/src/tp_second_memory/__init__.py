"""The device "vault": a memory of its own, and a kernel for each primitive.

Many kernels are Python loops over the memory; the others copy the numbers out, have NumPy and SciPy
calculate, and copy the results in. No composite has a kernel: their bodies have to do.
"""

from collections.abc import Iterable

from tensorplug.plugin import DeviceRuntime, Kernel, get_op, hookimpl

from .calculator import calculator_kernels
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
        """Return the kernels of primitives, also where an op became a composite after this was written."""
        kernels = [*table, *calculator_kernels()]
        return [kernel for kernel in kernels if get_op(kernel.op).kind == "primitive"]


plugin = VaultPlugin()
