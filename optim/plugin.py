"""The plugin that registers the steps of optimizers as ops."""

from __future__ import annotations

from collections.abc import Iterable

from tensorplug.core import plugins
from tensorplug.core.dispatch.op_registry import Op
from tensorplug.core.plugins import hookimpl

from .ops.optimizers.fused import FUSED
from .ops.optimizers.on_device import ON_DEVICE


class OptimPlugin:
    """Registers the ops of optimizers."""

    name = "optim"

    @hookimpl
    def tensorplug_ops(self) -> Iterable[Op]:
        """Return the ops."""
        return [function.op for function in (*FUSED, *ON_DEVICE)]


plugin = OptimPlugin()

if plugins.record_of(plugin.name) is None:
    plugins.register(plugin)
