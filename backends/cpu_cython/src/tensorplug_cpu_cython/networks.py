"""The plugin with the kernels of nn's ops: it is loaded when nn is, as the ops have to be there first."""

from __future__ import annotations

from collections.abc import Iterable

from tensorplug.plugin import Kernel, KernelTable, hookimpl

from ._dtypes import PRIORITY
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

FAMILIES = (
    activations,
    convolutions,
    dropout,
    embedding,
    losses,
    normalization,
    pooling,
    recurrent,
)


class CythonNetworksPlugin:
    """Registers the kernels."""

    name = "cpu_cython_networks"

    @hookimpl
    def tensorplug_kernels(self) -> Iterable[Kernel]:
        """Return the kernels."""
        table = KernelTable("cpu", PRIORITY)
        for family in FAMILIES:
            family.build(table)
        return table


plugin = CythonNetworksPlugin()
