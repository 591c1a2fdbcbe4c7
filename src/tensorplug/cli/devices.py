"""``tensorplug devices``: the device types, and why one cannot be used."""

from __future__ import annotations

import argparse
from typing import Any

from tensorplug._devices import WELL_KNOWN
from tensorplug.core.device.runtime import DeviceRuntime
from tensorplug.core.plugins import discovery, entry_points, manager

from .output import heading, print_json, table


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "devices",
        help="the device types, and why one cannot be used",
        description="List every device type that an installed plugin serves or that is well known.",
    )
    command.add_argument("--json", action="store_true", help="print the list as JSON")
    command.set_defaults(run=_devices)


def _devices(chosen: argparse.Namespace) -> int:
    discovery.load_all()
    found = report()
    if chosen.json:
        print_json(found)
    else:
        show(found)
    return 0


def report() -> list[dict[str, Any]]:
    """Return a row for each device type; those of the plugins that are loaded come first."""
    rows = [_row(name, runtime) for name, runtime in sorted(manager.runtimes().items())]
    known = {row["device"] for row in rows}
    asked = {found.device for found in entry_points.installed()} - entry_points.NO_DEVICES
    for name in sorted((asked | set(WELL_KNOWN)) - known):
        broken = [entry for entry in discovery.quarantined() if entry.found.device == name]
        reason = "; ".join(f"{entry.found.label}: {entry.reason}" for entry in broken)
        row = _empty(name)
        row["state"] = reason or _advice(name)
        rows.append(row)
    return rows


def _empty(name: str) -> dict[str, Any]:
    return {
        "device": name,
        "count": 0,
        "name": "",
        "plugins": "",
        "capabilities": "",
        "state": "",
    }


def _advice(name: str) -> str:
    hint = discovery.install_hint(name)
    return f"no plugin; {hint}" if hint else "no plugin is known"


def _row(name: str, runtime: DeviceRuntime) -> dict[str, Any]:
    row = _empty(name)
    row["plugins"] = ", ".join(
        record.name
        for record in manager.registered()
        if any(kernel.device == name for kernel in record.kernels)
        or any(own.type == name for own in record.devices)
    )
    row["capabilities"] = ", ".join(sorted(runtime.capabilities))
    try:  # a driver may fail in ways of its own, and this is where one comes to see how
        reason = runtime.unavailable_reason()
        if reason is None:
            row["count"] = runtime.device_count()
            row["name"] = ", ".join(runtime.device_name(n) for n in range(row["count"]))
        row["state"] = reason or "ready"
    except Exception as error:
        row["state"] = f"{type(error).__name__}: {error}"
    return row


def show(rows: list[dict[str, Any]]) -> None:
    """Print the list."""
    heading("devices")
    table(tuple(_empty("")), [tuple(row.values()) for row in rows])
