"""The plugin that registers the ops of sparse tensors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorplug.core import plugins
from tensorplug.core.dispatch.op_registry import Op
from tensorplug.core.ops import declared_in
from tensorplug.core.plugins import hookimpl

from . import ops


class SparsePlugin:
    """Registers the ops of sparse tensors, which are of their dense parts."""

    name = "sparse"

    @hookimpl
    def tensorplug_ops(self) -> Iterable[Op]:
        """Return the ops."""
        return [op for family in ops.FAMILIES for op in declared_in(family)]

    @hookimpl
    def tensorplug_derivatives(self) -> Iterable[Any]:
        """Return the derivatives."""
        return [item for family in ops.FAMILIES for item in family.DERIVATIVES]


plugin = SparsePlugin()

if plugins.record_of(plugin.name) is None:
    plugins.register(plugin)
