"""The plugin that registers nn's ops, derivatives and vmap rules: nothing that a stranger could not do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorplug.core import plugins
from tensorplug.core.dispatch.op_registry import Op
from tensorplug.core.ops import declared_in
from tensorplug.core.plugins import hookimpl

from . import functional, ops
from .functional import padding, upsampling, vision
from .functional.embedding import DERIVATIVES as OF_BAGS
from .functional.pooling import adaptive, fractional

FAMILIES = (*ops.FAMILIES, functional)
DIFFERENTIATED = (*ops.FAMILIES, adaptive, fractional, padding, upsampling, vision)


class NNPlugin:
    """Registers the ops of neural networks."""

    name = "nn"

    @hookimpl
    def tensorplug_ops(self) -> Iterable[Op]:
        """Return the ops."""
        return [op for family in FAMILIES for op in declared_in(family)]

    @hookimpl
    def tensorplug_derivatives(self) -> Iterable[Any]:
        """Return the derivatives."""
        found = [item for family in DIFFERENTIATED for item in getattr(family, "DERIVATIVES", ())]
        return [*found, *OF_BAGS]  # `functional.embedding` is the function, not the module

    @hookimpl
    def tensorplug_vmap_rules(self) -> Iterable[Any]:
        """Return the rules of vmap."""
        return [item for family in FAMILIES for item in getattr(family, "VMAP_RULES", ())]


plugin = NNPlugin()

if plugins.record_of(plugin.name) is None:
    plugins.register(plugin)
