"""The plugin objects that the entry points name."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from tensorplug.plugin import DeviceRuntime, Kernel, KernelTable, hookimpl

from .runtime import CudaRuntime


class CudaPlugin:
    """Registers the runtime, and the kernels of core's ops where a device can be used."""

    name = "cuda_cupy"

    @cached_property
    def runtime(self) -> CudaRuntime:
        """The runtime of "cuda"."""
        return CudaRuntime()

    @hookimpl
    def tensorplug_devices(self) -> Iterable[DeviceRuntime]:
        """Return the runtime of "cuda"."""
        return [self.runtime]

    @hookimpl
    def tensorplug_kernels(self) -> Iterable[Kernel]:
        """Return the kernels."""
        if self.runtime.unavailable_reason() is not None:
            return []
        from .tables import core_kernels

        return core_kernels(self.runtime)


class CudaNetworksPlugin:
    """Registers the kernels of nn's ops; it is loaded when nn is, as the ops have to be there first."""

    name = "cuda_cupy_networks"

    @hookimpl
    def tensorplug_kernels(self) -> Iterable[Kernel]:
        """Return the kernels; they import CuPy when they run."""
        from .tables import network_kernels

        return network_kernels()


class CudaOptimizersPlugin:
    """Registers the kernels of optimizers' ops; loaded when optim is, as the ops have to be there first."""

    name = "cuda_cupy_optimizers"

    @hookimpl
    def tensorplug_kernels(self) -> Iterable[Kernel]:
        """Return the kernels; they import CuPy when they run."""
        from .kernels import adafactor, more_optimizers, optimizers

        table = KernelTable("cuda")
        optimizers.build(table)
        more_optimizers.build(table)
        adafactor.build(table)
        return table


class CudaAmpPlugin:
    """Registers the kernels of the gradient scaler's ops; loaded when amp is, for the same reason."""

    name = "cuda_cupy_amp"

    @hookimpl
    def tensorplug_kernels(self) -> Iterable[Kernel]:
        """Return the kernels; they import CuPy when they run."""
        from .kernels import amp

        table = KernelTable("cuda")
        amp.build(table)
        return table


plugin = CudaPlugin()
networks = CudaNetworksPlugin()
optimizers = CudaOptimizersPlugin()
amp = CudaAmpPlugin()
