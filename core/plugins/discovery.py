"""Finding plugins among the installed packages, and loading them when they are first needed.

A plugin that fails to load is put in quarantine: everything else goes on, one warning is given, and
the error comes back, with its traceback, when its device is asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..device.runtime import DeviceRuntime
from ..dispatch.keys import lock
from ..dispatch.state import dispatch_state
from ..errors import DeviceNotAvailableError, PluginWarning, warn
from . import hookspecs, manager, waiting
from .entry_points import EXTENSION, NO_DEVICES, Found, installed
from .manager import PluginRecord


@dataclass(slots=True)
class Quarantined:
    """A plugin that could not be used, and why.

    Attributes
    ----------
    found : Found
        The plugin: ``found.label`` names it with package and version.
    error : BaseException or None
        What it raised.
    reason, fix : str
        Why it is not used, and what would help.
    traceback : str
        The original traceback. It is kept as text, and as a note of `error`: a traceback object
        would keep alive the variables of everything that was running when the plugin was first
        needed.
    """

    found: Found
    error: BaseException | None
    reason: str
    fix: str
    traceback: str


# By (package, entry point): the name under which it is registered.
_loaded: dict[tuple[str, str], str] = {}
_quarantine: dict[tuple[str, str], Quarantined] = {}
# The device types whose plugins were all tried, and those whose plugins are being loaded right now.
_tried: set[str] = set()
_loading: set[str] = set()

#: Well-known device types, and what returns the command that installs them; the facade fills it in.
install_hints: dict[str, Callable[[], str]] = {}

#: The attributes by which libraries show arrays of a device, by the device type that takes them.
array_protocols: dict[str, str] = {}


def install_hint(device: str) -> str:
    """Return the command that installs a device type, or "" if none is known."""
    hint = install_hints.get(device)
    return hint() if hint is not None else ""


def load_device(device: str) -> None:
    """Load every installed plugin that serves a device type; failures go into quarantine."""
    if device in _tried:
        return
    set_aside: list[Quarantined] = []
    with lock:
        if device in _tried or device in _loading:  # the latter: from within one of its plugins
            return
        _loading.add(device)
        try:
            serving = [found for found in installed() if found.device == device]
            current = {(found.package, found.device) for found in serving if found.is_current}
            for found in serving:
                # A package may speak several versions; then the others are none of our business.
                if found.is_current or (found.package, found.device) not in current:
                    set_aside += _load(found)
        finally:
            _loading.discard(device)
        _tried.add(device)
    _warn_of(set_aside)
    if device == EXTENSION:
        waiting.warn_of_misspelt(manager._records)


def load_all() -> None:
    """Load every installed plugin; failures go into quarantine."""
    for found in installed():
        load_device(found.device)


def refresh() -> None:
    """Look at the installed packages again, and give plugins in quarantine another try.

    For notebooks: call it after ``pip install``, instead of starting anew. A module that was
    imported once is not imported again.
    """
    import importlib

    with lock:
        importlib.invalidate_caches()
        installed(refresh=True)
        _quarantine.clear()
        _tried.clear()
        for key, name in list(_loaded.items()):
            if manager.record_of(name) is None:
                del _loaded[key]


def _load(found: Found) -> list[Quarantined]:
    """Load one plugin; return it if it had to be set aside."""
    key = (found.package, found.name)
    if key in _loaded or key in _quarantine:
        return []
    if not found.is_current:
        return [_set_aside(found, None, *_other_version(found))]
    started = time.perf_counter()
    try:
        plugin: Any = found.entry_point.load()
        name = manager.name_of(plugin, found.name)
        known = manager.record_of(name)
        if known is not None and known.plugin is plugin:
            # Importing its package registered it already; now its package is known.
            known.package, known.version, known.entry_point = (
                found.package, found.version, found.name,
            )  # fmt: skip
            _loaded[key] = name
            return []
        record = PluginRecord(name, plugin, found.package, found.version, found.name)
        _loaded[key] = manager.register_record(record).name
        record.seconds = time.perf_counter() - started
    except (Exception, SystemExit) as error:
        fix = (
            f"`pip install --upgrade {found.package}` may repair it, "
            f"`pip uninstall {found.package}` removes it"
        )
        return [_set_aside(found, error, f"{type(error).__name__}: {error}", fix)]
    return []


def _other_version(found: Found) -> tuple[str, str]:
    """Return reason and fix for a plugin of another API version."""
    version = found.api_version
    newer = version.isdecimal() and int(version) > hookspecs.API_VERSION
    upgrade = "tensorplug" if newer else found.package
    return (
        f"it speaks plugin API v{version}, this tensorplug v{hookspecs.API_VERSION}",
        f"`pip install --upgrade {upgrade}`, or install a {found.package} made for this tensorplug",
    )


def _set_aside(found: Found, error: BaseException | None, reason: str, fix: str) -> Quarantined:
    text = ""
    if error is not None:
        import traceback  # takes its time, and is rarely needed

        text = "".join(traceback.format_exception(error))
        chained: BaseException | None = error
        while chained is not None and chained.__traceback__ is not None:
            chained.__traceback__ = None
            chained = chained.__cause__ or chained.__context__
        error.add_note(f"Its traceback, from when the plugin was loaded:\n{text}")
    entry = Quarantined(found, error, reason, fix, text)
    _quarantine[found.package, found.name] = entry
    return entry


def _warn_of(set_aside: list[Quarantined]) -> None:
    for entry in set_aside:
        warn(
            f"tensorplug plugin {entry.found.label} is not used: {entry.reason}. {entry.fix}; "
            "tp.plugins.quarantined() has the traceback",
            PluginWarning,
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
    runtime = known_runtime(device)
    if runtime is None:
        raise _unavailable(device)
    return runtime


def known_runtime(device: str) -> DeviceRuntime | None:
    """Return the runtime of a device type, loading its plugins now if need be; None if none serves it."""
    if device not in _tried:
        load_device(device)
    return manager._runtimes.get(device)


def _unavailable(device: str) -> DeviceNotAvailableError:
    broken = [entry for entry in _quarantine.values() if entry.found.device == device]
    if broken:
        error = DeviceNotAvailableError(
            f"device {device!r} has no working plugin: "
            + "; ".join(f"{entry.found.label}: {entry.reason}. {entry.fix}" for entry in broken)
        )
        error.__cause__ = broken[0].error
        return error
    former = manager.removed_devices.get(device)
    if former is not None:
        return DeviceNotAvailableError(
            f"device {device!r} went away when plugin {former} was unregistered; register it again"
        )
    known = sorted({found.device for found in installed()} - NO_DEVICES | set(manager._runtimes))
    hint = install_hint(device)
    advice = (
        f"install one with: {hint}"
        if hint
        else f"install a package that provides it, or choose one of: {', '.join(known)}"
    )
    return DeviceNotAvailableError(f"no plugin provides device {device!r}; {advice}")


def _load_extensions(name: str) -> str:
    """Load the extensions, whose entry points do not tell their ops; return which may have had this one."""
    load_device(EXTENSION)
    package = name.rpartition(".")[0]
    return "".join(
        [
            f"; plugin {entry.found.label} is in quarantine: {entry.reason}"
            for entry in _quarantine.values()
            if entry.found.device == EXTENSION
            and package
            and package.replace("_", "-")
            in f"{entry.found.name} {entry.found.package}".replace("_", "-")
        ]
    )


def _find_extensions() -> None:
    load_device(EXTENSION)
    if EXTENSION in _tried:  # else they are being loaded, and the end of that gives the warnings
        waiting.warn_of_misspelt(manager._records)


dispatch_state.find_extensions = _find_extensions
dispatch_state.find_runtime = find_runtime
dispatch_state.find_missing = _load_extensions
