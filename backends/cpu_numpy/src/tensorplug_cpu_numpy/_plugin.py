"""The plugin object that the entry point names."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tensorplug.plugin import DeferredKernels, DeviceRuntime, Kernel, KernelTable, hookimpl
from tensorplug.plugin.array_kernels import ArrayNamespace, all_kernels

from .kernels import (
    _stored,
    arithmetic,
    cumulative,
    indexing,
    linalg,
    masking,
    matmul,
    reductions,
    shape,
    sorting,
    special,
    strided,
)
from .numpy_warnings import attributed
from .runtime import NATIVES, NumpyRuntime
from .sums import total


def _of_networks() -> Iterable[Kernel]:
    from .kernels import (
        activation,
        convolution,
        embedding,
        linear,
        losses,
        normalization,
        pooling,
    )

    table = KernelTable("cpu")
    namespace = ArrayNamespace(np, "cpu", NATIVES, reduce_add=total)
    for family in (activation, convolution, linear, pooling, normalization, losses):
        family.build(namespace, table)
    embedding.build(table)
    return table


def _of_optimizers() -> Iterable[Kernel]:
    from .kernels import optimizers

    table = KernelTable("cpu")
    optimizers.build(table)
    return table


def _of_sparse() -> Iterable[Kernel]:
    from .kernels import sparse

    table = KernelTable("cpu")
    sparse.build(table)
    return table


class NumpyPlugin:
    """Registers the runtime and the kernels."""

    name = "cpu_numpy"

    @hookimpl
    def tensorplug_devices(self) -> Iterable[DeviceRuntime]:
        """Return the runtime of "cpu"."""
        return [NumpyRuntime()]

    @hookimpl
    def tensorplug_kernels(self) -> Iterable[Kernel | DeferredKernels]:
        """Return the kernels."""
        namespace = ArrayNamespace(np, "cpu", NATIVES, reduce_add=total)
        table = all_kernels(namespace)
        for family in (
            arithmetic,
            cumulative,
            indexing,
            linalg,
            masking,
            matmul,
            reductions,
            shape,
            sorting,
            strided,
        ):
            family.build(table)
        special.build(namespace, table)
        return [
            *_stored.kernels(attributed(table.settled())),
            DeferredKernels("nn", _of_networks),
            DeferredKernels("optim", _of_optimizers),
            DeferredKernels("sparse", _of_sparse),
        ]


plugin = NumpyPlugin()
