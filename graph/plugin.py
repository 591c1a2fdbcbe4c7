"""The plugin that registers the ops of graphs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorplug.core import plugins
from tensorplug.core.dispatch.op_registry import Op
from tensorplug.core.ops import declared_in
from tensorplug.core.plugins import hookimpl

from . import ops


class GraphPlugin:
    """Registers what graphs need beside the ops of programs."""

    name = "graph"

    @hookimpl
    def tensorplug_ops(self) -> Iterable[Op]:
        """Return the ops."""
        return declared_in(ops)

    @hookimpl
    def tensorplug_derivatives(self) -> Iterable[Any]:
        """Return the derivatives."""
        return ops.DERIVATIVES


plugin = GraphPlugin()

if plugins.record_of(plugin.name) is None:
    plugins.register(plugin)
