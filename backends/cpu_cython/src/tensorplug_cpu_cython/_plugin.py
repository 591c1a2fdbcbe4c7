"""The plugin object that the entry point names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from tensorplug.plugin import DeferredKernels, Kernel, KernelTable, RuntimeExtension, hookimpl

from . import machine
from ._dtypes import PRIORITY
from .families import (
    copies,
    fused,
    indices,
    moments,
    orders,
    places,
    pointwise,
    products,
    reductions,
    scans,
    sequences,
    softmaxes,
    special,
    views,
)

FAMILIES = (
    copies,
    fused,
    indices,
    moments,
    orders,
    places,
    pointwise,
    products,
    reductions,
    scans,
    sequences,
    softmaxes,
    special,
    views,
)


def _table(families: Iterable[Any]) -> KernelTable:
    table = KernelTable("cpu", PRIORITY)
    for family in families:
        family.build(table)
    return table


def _of_networks() -> KernelTable:
    from .families import (
        activations,
        convolutions,
        dropout,
        embedding,
        losses,
        normalization,
        pooling,
        recurrent,
    )

    return _table(
        (
            activations,
            convolutions,
            dropout,
            embedding,
            losses,
            normalization,
            pooling,
            recurrent,
        )
    )


def _of_optimizers() -> KernelTable:
    from .families import optimizers

    return _table((optimizers,))


class CompiledRuntime(RuntimeExtension):
    """The threads of the compiled kernels, and the memory of their results."""

    type = "cpu"
    namespace: Mapping[str, Any] = MappingProxyType(
        {"set_memory_limit": machine.set_memory_limit, "simd_level": machine.level}
    )

    def set_num_threads(self, number: int) -> None:
        """Limit OpenMP's threads."""
        machine.set_num_threads(number)

    def memory_stats(self, index: int) -> Mapping[str, int]:
        """Return the allocator's figures."""
        return machine.memory_stats()

    def reset_peak_memory_stats(self, index: int) -> None:
        """Make the peak figures start again from the present."""
        machine.reset_peak_memory_stats()

    def empty_cache(self) -> None:
        """Give the allocator's cached blocks back to the system."""
        machine.empty_cache()


class CythonPlugin:
    """Registers the kernels, and what they bring to the runtime of "cpu"."""

    name = "cpu_cython"

    @hookimpl
    def tensorplug_kernels(self) -> Iterable[Kernel | DeferredKernels]:
        """Return the kernels."""
        return [
            *_table(FAMILIES),
            DeferredKernels("nn", _of_networks),
            DeferredKernels("optim", _of_optimizers),
        ]

    @hookimpl
    def tensorplug_runtime_extensions(self) -> Iterable[RuntimeExtension]:
        """Return threads and allocator."""
        return [CompiledRuntime()]


plugin = CythonPlugin()
