"""The plugin with the kernels of optimizers' ops: loaded when optim is, as the ops have to be there first."""

from __future__ import annotations

from collections.abc import Iterable

from tensorplug.plugin import Kernel, KernelTable, hookimpl

from .kernels import optimizers


class NumpyOptimizersPlugin:
    """Registers the kernels."""

    name = "cpu_numpy_optimizers"

    @hookimpl
    def tensorplug_kernels(self) -> Iterable[Kernel]:
        """Return the kernels."""
        table = KernelTable("cpu")
        optimizers.build(table)
        return table


plugin = NumpyOptimizersPlugin()
