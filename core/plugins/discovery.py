"""Finding plugins among the installed packages, and loading them when they are first needed.

Entry points are read without importing anything. The group tells the API version
(``tensorplug.v1``), the name the device type and a label (``cpu.numpy``); extension plugins, which add
ops for every device, have names that begin with ``extension.``.

A plugin that fails to load is put in quarantine: everything else goes on, one warning is given, and the
error comes back, with its traceback, when its device is asked for.
"""

from __future__ import annotations

import threading
import traceback
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import kinds, operators
from ..errors import DeviceNotAvailableError, PluginWarning
from ..runtime import DeviceRuntime
from . import hookspecs, manager
from .manager import PluginRecord

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

EXTENSION = "extension"


@dataclass(slots=True)
class Found:
    """An installed plugin, as its entry point describes it; nothing of it is imported."""

    entry_point: EntryPoint
    api_version: str

    @property
    def name(self) -> str:
        """The entry point's name, ``<device type>.<label>``."""
        return self.entry_point.name

    @property
    def device(self) -> str:
        """The device type it serves, or "extension"."""
        return self.entry_point.name.partition(".")[0]

    @property
    def package(self) -> str:
        """The distribution's name."""
        return self.entry_point.dist.name if self.entry_point.dist is not None else ""

    @property
    def version(self) -> str:
        """The distribution's version."""
        return self.entry_point.dist.version if self.entry_point.dist is not None else ""

    @property
    def label(self) -> str:
        """The name with package and version, for messages."""
        return f"{self.name} ({self.package} {self.version})"


@dataclass(slots=True)
class Quarantined:
    """A plugin that could not be used, and why."""

    found: Found
    error: BaseException | None
    reason: str

    @property
    def traceback(self) -> str:
        """The original traceback as text."""
        return "" if self.error is None else "".join(traceback.format_exception(self.error))


_lock = threading.RLock()
_found: list[Found] | None = None
_loaded: set[tuple[str, str]] = set()
_quarantine: dict[tuple[str, str], Quarantined] = {}
# Where loading stands, by device type: absent, or True once all of its plugins were tried.
_tried: set[str] = set()

#: Well-known device types and the command that installs them; the facade fills it in.
install_hints: dict[str, str] = {}


def installed(refresh: bool = False) -> list[Found]:
    """Return every installed plugin of any API version; imports none of them."""
    global _found
    with _lock:
        if _found is None or refresh:
            from importlib.metadata import entry_points

            points = entry_points()
            found = [
                Found(point, group.removeprefix(hookspecs.GROUP_PREFIX))
                for group in sorted(points.groups)
                if group.startswith(hookspecs.GROUP_PREFIX)
                for point in points.select(group=group)
            ]
            # One distribution can be seen twice: installed, and as a source tree on sys.path.
            unique = {
                (f.package, f.entry_point.group, f.name, f.entry_point.value): f for f in found
            }
            _found = list(unique.values())
        return list(_found)


def load_device(device: str) -> None:
    """Load every installed plugin that serves a device type; failures go into quarantine."""
    with _lock:
        if device in _tried:
            return
        _tried.add(device)
        for found in installed():
            if found.device == device:
                _load(found)


def load_all() -> None:
    """Load every installed plugin; failures go into quarantine."""
    for found in installed():
        load_device(found.device)


def _load(found: Found) -> None:
    key = (found.package, found.name)
    if key in _loaded or key in _quarantine:
        return
    if found.api_version != str(hookspecs.API_VERSION):
        _set_aside(
            found,
            None,
            f"it speaks plugin API v{found.api_version}, this tensorplug v{hookspecs.API_VERSION}; "
            f"install a version of {found.package} for this tensorplug",
        )
        return
    try:
        plugin: Any = found.entry_point.load()
        name = getattr(plugin, "name", None) or getattr(plugin, "__name__", found.name)
        manager.register_record(
            PluginRecord(name, plugin, found.package, found.version, found.name)
        )
    except Exception as error:
        _set_aside(found, error, f"{type(error).__name__}: {error}")
    else:
        _loaded.add(key)


def _set_aside(found: Found, error: BaseException | None, reason: str) -> None:
    _quarantine[found.package, found.name] = Quarantined(found, error, reason)
    warnings.warn(
        f"tensorplug plugin {found.label} is not used: {reason}. `tp.plugins.quarantined()` has the "
        "traceback",
        PluginWarning,
        stacklevel=2,
    )


def quarantined() -> list[Quarantined]:
    """Return the plugins that could not be used so far, with their errors."""
    return list(_quarantine.values())


def find_runtime(device: str) -> DeviceRuntime:
    """Return the runtime of a device type, loading its plugins now if need be.

    Raises
    ------
    DeviceNotAvailableError
        If no plugin serves it; the message says what to install, or what is broken and why.
    """
    runtime = manager._runtimes.get(device)
    if runtime is None or device not in _tried:
        load_device(device)
        runtime = manager._runtimes.get(device)
    if runtime is None:
        raise _unavailable(device)
    return runtime


def _unavailable(device: str) -> DeviceNotAvailableError:
    broken = [entry for entry in _quarantine.values() if entry.found.device == device]
    if broken:
        error = DeviceNotAvailableError(
            f"device {device!r} has no working plugin: "
            + "; ".join(f"{entry.found.label}: {entry.reason}" for entry in broken)
        )
        error.__cause__ = broken[0].error
        return error
    known = sorted({found.device for found in installed()} - {EXTENSION} | set(manager._runtimes))
    hint = install_hints.get(device)
    advice = (
        f"install one with: {hint}"
        if hint
        else f"install a package that provides it, or choose one of: {', '.join(known)}"
    )
    return DeviceNotAvailableError(f"no plugin provides device {device!r}; {advice}")


def _load_extensions(op: str) -> None:
    load_device(EXTENSION)


kinds.find_runtime = find_runtime
operators.find_missing = _load_extensions
