"""The hooks of the plugin API, version 1: one per thing that can be registered.

A plugin is any object (a module, an instance) with some of these methods, marked with
``tensorplug.plugin.hookimpl``, and a ``name``. Hooks run once, at registration; nothing here is called
on the way of an op.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from ..layers import Layer
    from ..operators import Op
    from ..resolution import Kernel
    from ..runtime import DeviceRuntime

PROJECT = "tensorplug"
API_VERSION = 1
GROUP_PREFIX = "tensorplug.v"
GROUP = f"{GROUP_PREFIX}{API_VERSION}"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def tensorplug_devices() -> Iterable[DeviceRuntime]:  # type: ignore[empty-body]
    """Return the runtimes of the device types that this plugin adds."""


@hookspec
def tensorplug_ops() -> Iterable[Op | Callable[..., Any]]:  # type: ignore[empty-body]
    """Return the ops that this plugin adds, as declared by ``primitive`` and ``composite``."""


@hookspec
def tensorplug_kernels() -> Iterable[Kernel]:  # type: ignore[empty-body]
    """Return kernels for any ops and device types, also those of other plugins."""


@hookspec
def tensorplug_derivatives() -> Iterable[Any]:  # type: ignore[empty-body]
    """Return derivatives, as made by ``derivative`` and ``not_differentiable``."""


@hookspec
def tensorplug_layers() -> Iterable[Layer]:  # type: ignore[empty-body]
    """Return layers that users can activate by name."""
