"""The plugin with the kernels of nn's ops: it is loaded when nn is, as the ops have to be there first."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tensorplug.plugin import Kernel, KernelTable, hookimpl
from tensorplug.plugin.array_kernels import ArrayNamespace

from .kernels import convolution, embedding, linear, losses, normalization, pooling
from .runtime import NATIVES


class NumpyNetworksPlugin:
    """Registers the kernels."""

    name = "cpu_numpy_networks"

    @hookimpl
    def tensorplug_kernels(self) -> Iterable[Kernel]:
        """Return the kernels."""
        table = KernelTable("cpu")
        namespace = ArrayNamespace(np, "cpu", NATIVES)
        for family in (convolution, linear, pooling, normalization, losses):
            family.build(namespace, table)
        embedding.build(table)
        return table


plugin = NumpyNetworksPlugin()
