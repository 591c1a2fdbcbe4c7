"""The plugin that registers autocast's layer and policies, and the ops of the gradient scaler."""

from __future__ import annotations

from collections.abc import Iterable

from tensorplug.core import plugins
from tensorplug.core.dispatch.autocast_policies import AutocastPolicy
from tensorplug.core.dispatch.layers import Layer
from tensorplug.core.dispatch.op_registry import Op
from tensorplug.core.plugins import discovery, entry_points, hookimpl

from .layer import layer
from .ops.amp import OPS
from .policies import policies


class AmpPlugin:
    """Registers what mixed precision consists of."""

    name = "amp"

    @hookimpl
    def tensorplug_ops(self) -> Iterable[Op]:
        """Return the ops."""
        return [function.op for function in OPS]

    @hookimpl
    def tensorplug_layers(self) -> Iterable[Layer]:
        """Return the layer."""
        return [layer]

    @hookimpl
    def tensorplug_autocast(self) -> Iterable[AutocastPolicy]:
        """Return the policies of tensorplug's own ops and functions."""
        return policies()


plugin = AmpPlugin()

if plugins.record_of(plugin.name) is None:
    plugins.register(plugin)
    # Other extensions may bring policies for their ops.
    discovery.load_device(entry_points.EXTENSION)
