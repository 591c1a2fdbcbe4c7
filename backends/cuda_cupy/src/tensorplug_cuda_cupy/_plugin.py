"""The plugin object that the entry point names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, TypeVar

from tensorplug.plugin import DeferredKernels, DeviceRuntime, Fuser, Kernel, KernelTable, hookimpl

from .runtime.runtime import CudaRuntime

Kernels = TypeVar("Kernels", bound=Iterable[Kernel])


def _of_networks() -> KernelTable:
    from .tables import network_kernels

    return network_kernels()


def _of_optimizers() -> KernelTable:
    from .kernels.optimizers import adafactor, counted, fused

    table = KernelTable("cuda")
    fused.build(table)
    counted.build(table)
    adafactor.build(table)
    return table


def _of_amp() -> KernelTable:
    from .kernels import amp

    table = KernelTable("cuda")
    amp.build(table)
    return table


def _of_sparse() -> KernelTable:
    from .kernels import sparse

    table = KernelTable("cuda")
    sparse.build(table)
    return table


class CudaPlugin:
    """Registers the runtime and the kernels; those of core's ops where a device can be used."""

    name = "cuda_cupy"

    def __init__(self) -> None:
        self._kernels: set[tuple[str, int]] = set()  # ops, and the ids of functions

    @cached_property
    def runtime(self) -> CudaRuntime:
        """The runtime of "cuda"."""
        return CudaRuntime()

    @hookimpl
    def tensorplug_devices(self) -> Iterable[DeviceRuntime]:
        """Return the runtime of "cuda"."""
        return [self.runtime]

    @hookimpl
    def tensorplug_kernels(self) -> Iterable[Kernel | DeferredKernels]:
        """Return the kernels; those of extensions' ops import CuPy when they run."""
        deferred = [
            DeferredKernels("nn", lambda: self._noted(_of_networks())),
            DeferredKernels("optim", _of_optimizers),
            DeferredKernels("amp", _of_amp),
            DeferredKernels("sparse", _of_sparse),
        ]
        if self.runtime.unavailable_reason() is not None:
            return deferred
        from .tables import core_kernels

        return [*self._noted(core_kernels(self.runtime)), *deferred]

    @hookimpl
    def tensorplug_fusers(self) -> Iterable[Fuser]:
        """Return what runs parts of compiled programs, where a device can be used."""
        if self.runtime.unavailable_reason() is not None:
            return []
        from .regions.graphs import GraphFuser
        from .regions.pointwise import PointwiseFuser

        return [PointwiseFuser(self.is_own), GraphFuser()]

    def is_own(self, op: str, kernel: Callable[..., Any]) -> bool:
        """Return whether a kernel of an op is one that this plugin registered."""
        return (op, id(kernel)) in self._kernels

    def _noted(self, kernels: Kernels) -> Kernels:
        self._kernels.update((kernel.op, id(kernel.function)) for kernel in kernels)
        return kernels


plugin = CudaPlugin()
