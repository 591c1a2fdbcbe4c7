"""``tensorplug doctor``: versions, plugins, devices, what is missing for speed, and what is wrong."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import warnings
from importlib import metadata
from typing import Any

import tensorplug
from tensorplug._devices import FAST_BACKEND
from tensorplug.core.errors import PluginWarning
from tensorplug.core.plugins import (
    API_VERSION,
    PluginRecord,
    discovery,
    entry_points,
    manager,
    quarantined_fusers,
    quarantined_kernels,
)
from tensorplug.core.plugins.discovery import Quarantined
from tensorplug.core.plugins.entry_points import DISTRIBUTED, EXTENSION, Found
from tensorplug.core.plugins.installation import install_command
from tensorplug.core.processors import available_processors

from . import devices
from .output import heading, print_json, table

# Users wait for a plugin when they first ask for its device; beyond this they wonder.
_SLOW = 2.0

_SERVES = {EXTENSION: "every device", DISTRIBUTED: "process groups"}
_PACKAGES = ("numpy", "scipy", "pluggy", "ml-dtypes", "threadpoolctl")


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "doctor",
        help="versions, plugins, devices and threads, and what is wrong with any",
        description="Load every installed plugin and report. The exit status is 1 if one of them "
        "cannot be used.",
    )
    command.add_argument("--json", action="store_true", help="print the report as JSON")
    command.set_defaults(run=_doctor)


def report() -> dict[str, Any]:
    """Return all that the command prints, as plain values; loads every plugin."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PluginWarning)  # the report says it
        discovery.load_all()
    broken = discovery.quarantined()
    return {
        "versions": _versions(),
        "plugins": _plugins(broken),
        "devices": devices.report(),
        "quarantined": [
            {
                "plugin": entry.found.label,
                "device": entry.found.device,
                "reason": entry.reason,
                "fix": entry.fix,
                "traceback": entry.traceback,
            }
            for entry in broken
        ],
        "kernels": [
            {"plugin": entry.plugin, "reason": f"not used: {entry.error}", "wrong": True}
            for entry in quarantined_kernels()
        ]
        + [
            {
                "plugin": entry.plugin,
                "reason": f"the fuser {entry.name!r} is not used: {entry.error}",
                "wrong": True,
            }
            for entry in quarantined_fusers()
        ]
        + [
            {"plugin": entry.plugin, "reason": str(entry), "wrong": entry.misspelt}
            for entry in manager.waiting_kernels()
        ],
        "misnamed": [
            {"plugin": found.label, "reason": reason, "fix": fix}
            for found, reason, fix in entry_points.misnamed()
        ],
        "slow": [
            {
                "plugin": record.label,
                "reason": f"it took {record.seconds:.1f} s to load",
                "fix": "`python -X importtime` shows where; its author can import what is heavy in the "
                "functions that need it",
            }
            for record in manager.registered()
            if record.seconds > _SLOW
        ],
        "speed": _speed(),
        "threads": _threads(),
    }


def _doctor(chosen: argparse.Namespace) -> int:
    found = report()
    if chosen.json:
        print_json(found)
    else:
        _print(found)
    wrong = any(entry["wrong"] for entry in found["kernels"])
    return 1 if found["quarantined"] or found["misnamed"] or wrong else 0


def _versions() -> dict[str, str]:
    versions = {
        "tensorplug": f"{tensorplug.__version__}, plugin API v{API_VERSION}",
        "python": f"{platform.python_version()} ({sys.executable})",
        "platform": f"{platform.platform()}, {os.cpu_count()} CPUs",
    }
    for name in _PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return versions


def _speed() -> list[dict[str, str]]:
    """Return what decides how fast the CPU is, and the command that brings what is missing."""
    rows = [("compiled hot path", "in use", "")]
    if not tensorplug.compiled():
        rows = [("compiled hot path", "runs as Python", _recompile())]
    if FAST_BACKEND in {record.package for record in manager.registered()}:
        rows.append(("compiled kernels", "in use", ""))
    else:
        rows.append(("compiled kernels", "missing", install_command(f"{FAST_BACKEND}[onednn]")))
    rows += [(item.topic, item.state, item.fix) for _, item in manager.advice()]
    threads = tensorplug.get_num_threads()
    cores = available_processors()
    fix = f"OMP_NUM_THREADS, or tp.set_num_threads({cores})" if threads < cores else ""
    rows.append(("threads", f"{threads} of {cores} processors", fix))
    return [dict(zip(("what", "state", "fix"), row, strict=True)) for row in rows]


def _recompile() -> str:
    """Return how the compiled hot path is had: wheels bring it, a folder takes a compiler."""
    command = install_command("tensorplug")
    return f"{command.replace('install', 'install --force-reinstall --no-deps', 1)} (with a C compiler)"


def _plugins(broken: list[Quarantined]) -> list[dict[str, Any]]:
    """Return every plugin: those found by their entry points, then those registered in process."""
    aside = {id(entry.found) for entry in broken}
    rows = [_installed(found, id(found) in aside) for found in entry_points.installed()]
    rows += [_in_process(record) for record in manager.registered() if not record.entry_point]
    return sorted(rows, key=lambda row: row["package"])


def _in_process(record: PluginRecord) -> dict[str, Any]:
    own = type(record.plugin).__module__.startswith("tensorplug.")
    return {
        "plugin": record.name,
        "package": "tensorplug" if own else "registered in this process",
        "version": tensorplug.__version__ if own else record.version,
        "api": f"v{API_VERSION}",
        "serves": ", ".join(sorted({kernel.device for kernel in record.kernels})) or "every device",
        "ops": len(record.ops),
        "kernels": len(record.kernels),
        "state": "in use",
    }


def _installed(found: Found, is_aside: bool) -> dict[str, Any]:
    record = next(
        (
            r
            for r in manager.registered()
            if (r.package, r.entry_point) == (found.package, found.name)
        ),
        None,
    )
    return {
        "plugin": record.name if record is not None else found.name,
        "package": found.package,
        "version": found.version,
        "api": f"v{found.api_version}",
        "serves": _SERVES.get(found.device, found.device),
        "ops": len(record.ops) if record is not None else 0,
        "kernels": len(record.kernels) if record is not None else 0,
        "state": "quarantined" if is_aside else "in use" if record is not None else "not used",
    }


def _threads() -> dict[str, Any]:
    from threadpoolctl import threadpool_info

    return {
        "tensorplug": tensorplug.get_num_threads(),
        "libraries": [
            {
                "library": pool["internal_api"],
                "version": pool.get("version") or "",
                "threads": pool["num_threads"],
                "file": pool["filepath"],
            }
            for pool in threadpool_info()
        ],
    }


def _print(found: dict[str, Any]) -> None:
    heading("versions")
    table(("package", "version"), list(found["versions"].items()))
    heading("plugins")
    rows = found["plugins"]
    table(tuple(rows[0]), [tuple(row.values()) for row in rows])
    devices.show(found["devices"])
    heading("speed of the CPU")
    table(
        ("what", "state", "what brings it"),
        [tuple(row.values()) for row in found["speed"]],
    )
    heading(f"threads: tensorplug uses {found['threads']['tensorplug']}")
    table(
        ("library", "version", "threads", "file"),
        [tuple(row.values()) for row in found["threads"]["libraries"]],
    )
    for entry in found["quarantined"]:
        heading(f"in quarantine: {entry['plugin']}")
        print(f"  why: {entry['reason']}\n  fix: {entry['fix']}")
        if entry["traceback"]:
            print("    " + entry["traceback"].rstrip().replace("\n", "\n    "))
        print()
    if found["kernels"]:
        heading("kernels that are not used")
        table(
            ("plugin", "why"),
            [(entry["plugin"], entry["reason"]) for entry in found["kernels"]],
        )
    for entry in found["misnamed"]:
        heading(f"not found: {entry['plugin']}")
        print(f"  why: {entry['reason']}\n  fix: {entry['fix']}\n")
    for entry in found["slow"]:
        heading(f"slow to load: {entry['plugin']}")
        print(f"  why: {entry['reason']}\n  fix: {entry['fix']}\n")
    count = len(found["quarantined"])
    misnamed = len(found["misnamed"])
    wrong = sum(entry["wrong"] for entry in found["kernels"])
    if count or misnamed or wrong:
        print(
            f"{count} plugins in quarantine, {misnamed} that are not found, "
            f"{wrong} kernels that nothing uses"
        )
    else:
        print("nothing is wrong with the plugins")
    slower = [row["what"] for row in found["speed"] if row["fix"]]
    if slower:
        print(f"for more speed: {', '.join(slower)}; see above")
