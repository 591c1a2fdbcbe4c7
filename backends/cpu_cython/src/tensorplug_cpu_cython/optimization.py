"""The plugin with the kernels of optimizers' ops: loaded when optim is, as the ops have to be there first."""

from __future__ import annotations

from collections.abc import Iterable

from tensorplug.plugin import Kernel, KernelTable, hookimpl

from . import optimizers
from ._dtypes import FLOATS, PRIORITY


class CythonOptimizersPlugin:
    """Registers the kernels."""

    name = "cpu_cython_optimizers"

    @hookimpl
    def tensorplug_kernels(self) -> Iterable[Kernel]:
        """Return the kernels."""
        table = KernelTable("cpu", PRIORITY)
        wide = [dtype for dtype in FLOATS if dtype.itemsize >= 4]
        for name in ("sgd_step", "adam_step", "adagrad_step", "rmsprop_step"):
            table.add(f"optim.{name}", getattr(optimizers, name), dtypes=wide)
        return table


plugin = CythonOptimizersPlugin()
