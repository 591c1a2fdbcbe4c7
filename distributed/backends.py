"""Backends of process groups: their names, which plugins bring them, and which one serves a device type."""

from __future__ import annotations

import logging
from typing import Any, ClassVar

from tensorplug.core.plugins import discovery, manager
from tensorplug.core.plugins.entry_points import DISTRIBUTED, installed
from tensorplug.core.plugins.installation import install_command
from tensorplug.core.plugins.process_groups import ProcessGroupBackend

log = logging.getLogger(__name__)

# What installs a backend that is asked for by name and not there.
_EXTRAS = {"mpi": "mpi", "gloo": "mpi", "nccl": "nccl"}


class Backend(str):
    """The name of a backend of process groups, in small letters.

    Examples
    --------
    >>> import tensorplug.distributed as dist
    >>> dist.Backend("GLOO")
    'gloo'
    """

    __slots__ = ()

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    XCCL = "xccl"
    UCC = "ucc"
    MPI = "mpi"
    default_device_backend_map: ClassVar[dict[str, str]] = {}
    backend_list: ClassVar[list[str]] = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI]

    def __new__(cls, name: str) -> str:  # type: ignore[misc]
        """Return the name in small letters."""
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return name.lower()


def _find(name: str) -> ProcessGroupBackend | None:
    """Return the backend that serves under a name: its own before an alias."""
    discovery.load_device(DISTRIBUTED)
    known = [b for b in manager.process_group_backends() if b.unavailable_reason() is None]
    own = [backend for backend in known if backend.name == name]
    return next(iter(own or [backend for backend in known if name in backend.aliases]), None)


def _required(name: str) -> ProcessGroupBackend:
    found = _find(name)
    if found is not None:
        if found.name != name:
            log.info("process groups of %r are served by %r", name, found.name)
        return found
    reasons = [
        f"{backend.name}: {reason}"
        for backend in manager.process_group_backends()
        if (backend.name == name or name in backend.aliases)
        and (reason := backend.unavailable_reason()) is not None
    ]
    reasons += [
        f"{entry.found.label}: {entry.reason}"
        for entry in discovery.quarantined()
        if entry.found.device == DISTRIBUTED
    ]
    if reasons:
        raise RuntimeError(f"process groups of {name!r} cannot be used: {'; '.join(reasons)}")
    if name in _EXTRAS:
        command = install_command(f"tensorplug[{_EXTRAS[name]}]")
        raise RuntimeError(
            f"no plugin brings process groups of {name!r}; install one with: {command}"
        )
    names = sorted({backend.name for backend in manager.process_group_backends()}) or ["none"]
    raise ValueError(f"Unknown backend type {name!r}; installed are: {', '.join(names)}")


def is_available() -> bool:
    """Return whether process groups can be had: whether a plugin that brings them is installed.

    Examples
    --------
    >>> import tensorplug.distributed as dist
    >>> dist.is_available() or "pip install 'tensorplug[mpi]'"  # doctest: +SKIP
    True
    """
    return bool(
        manager.process_group_backends()
        or any(found.device == DISTRIBUTED and found.is_current for found in installed())
    )


def is_backend_available(backend: str) -> bool:
    """Return whether process groups of this name can be had.

    Examples
    --------
    >>> import tensorplug.distributed as dist
    >>> dist.is_backend_available("carrier_pigeon")
    False
    """
    return _find(backend.lower()) is not None


def is_mpi_available() -> bool:
    """Return whether process groups of "mpi" can be had."""
    return is_backend_available("mpi")


def is_nccl_available() -> bool:
    """Return whether process groups of "nccl" can be had."""
    return is_backend_available("nccl")


def is_gloo_available() -> bool:
    """Return whether process groups of "gloo" can be had; MPI serves them."""
    return is_backend_available("gloo")


def is_ucc_available() -> bool:
    """Return whether process groups of "ucc" can be had."""
    return is_backend_available("ucc")


def is_xccl_available() -> bool:
    """Return whether process groups of "xccl" can be had."""
    return is_backend_available("xccl")


def chosen_for(backend: str | None) -> dict[str, tuple[str, ProcessGroupBackend]]:
    """Return the backend for each device type, with the name it was asked for by."""
    if backend is None:
        discovery.load_device(DISTRIBUTED)
        chosen: dict[str, tuple[str, ProcessGroupBackend]] = {}
        for found in manager.process_group_backends():
            if found.unavailable_reason() is None:
                for type_ in sorted(found.device_types):
                    chosen.setdefault(type_, (found.name, found))
        if not chosen:
            _required("mpi")
        return chosen
    chosen = {}
    for part in backend.lower().split(","):
        type_, colon, name = part.strip().partition(":")
        found = _required(name if colon else type_)
        if colon and type_ not in found.device_types:
            raise ValueError(
                f"process groups of {name!r} take tensors of {', '.join(sorted(found.device_types))}, "
                f"not of {type_!r}"
            )
        for served in [type_] if colon else sorted(found.device_types):
            chosen[served] = (name if colon else type_, found)
    return chosen


def get_default_backend_for_device(device: Any) -> str:
    """Return the name of the backend of process groups for a device.

    Raises
    ------
    ValueError
        If no installed plugin has one.
    """
    discovery.load_device(DISTRIBUTED)
    type_ = str(device).partition(":")[0]
    for found in manager.process_group_backends():
        if type_ in found.device_types and found.unavailable_reason() is None:
            return found.name
    raise ValueError(f"Default backend not registered for device : {device}")
