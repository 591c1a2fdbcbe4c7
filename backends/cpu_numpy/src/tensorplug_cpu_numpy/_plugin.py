"""The plugin object that the entry point names."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tensorplug.plugin import DeviceRuntime, Kernel, hookimpl
from tensorplug.plugin.array_kernels import ArrayNamespace, all_kernels

from .kernels import arithmetic, cumulative, indexing, linalg, shape, sorting, special
from .muting import attributed
from .runtime import NATIVES, NumpyRuntime


class NumpyPlugin:
    """Registers the runtime and the kernels."""

    name = "cpu_numpy"

    @hookimpl
    def tensorplug_devices(self) -> Iterable[DeviceRuntime]:
        """Return the runtime of "cpu"."""
        return [NumpyRuntime()]

    @hookimpl
    def tensorplug_kernels(self) -> Iterable[Kernel]:
        """Return the kernels."""
        namespace = ArrayNamespace(np, "cpu", NATIVES)
        table = all_kernels(namespace)
        for family in (arithmetic, cumulative, indexing, linalg, shape, sorting):
            family.build(table)
        special.build(namespace, table)
        return attributed(table.settled())


plugin = NumpyPlugin()
