"""The plugin line: hooks, registry, discovery. Users see it as ``tp.plugins``."""

from __future__ import annotations

from ..labels import plugin_label
from .discovery import (
    Quarantined,
    load_all,
    load_device,
    quarantined,
    refresh,
)
from .entry_points import Found, installed
from .fusers import QuarantinedFuser, quarantined_fusers
from .hookspecs import API_VERSION, GROUP, hookimpl
from .manager import (
    PluginRecord,
    layers,
    record_of,
    register,
    registered,
    runtime_parts,
    runtimes,
    unregister,
    waiting_kernels,
)
from .waiting import QuarantinedKernel, Waiting, quarantined_kernels

__all__ = [
    "API_VERSION",
    "GROUP",
    "Found",
    "PluginRecord",
    "Quarantined",
    "QuarantinedFuser",
    "QuarantinedKernel",
    "Waiting",
    "hookimpl",
    "installed",
    "layers",
    "load_all",
    "load_device",
    "plugin_label",
    "quarantined",
    "quarantined_fusers",
    "quarantined_kernels",
    "record_of",
    "refresh",
    "register",
    "registered",
    "require_names",
    "runtime_parts",
    "runtimes",
    "unregister",
    "waiting_kernels",
]


def require_names(names: tuple[str, ...]) -> None:
    """Raise ValueError unless each name is a registered plugin's, loading installed ones to see."""
    if all(record_of(name) is not None for name in names):
        return
    load_all()
    for name in names:
        if record_of(name) is None:
            known = ", ".join(sorted(record.name for record in registered()))
            raise ValueError(f"no plugin is named {name!r}; registered are {known}")
