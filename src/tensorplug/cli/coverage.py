"""``tensorplug coverage``: which backend has kernels for which ops and dtypes."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from fnmatch import fnmatch
from pathlib import Path

from tensorplug.core.dispatch.coverage import Entry

from .output import complain, heading, no_op, print_json, table


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "coverage",
        help="which backend has kernels for which ops and dtypes",
        description="Say for each op, dtype and backend whether a kernel of its own runs it, its "
        "decomposition into other ops, or nothing.",
    )
    command.add_argument("--backend", default="*", help="pattern of the backends, such as cpu_*")
    command.add_argument("--op", default="*", help="pattern of the ops, such as 'linalg_*'")
    command.add_argument("--json", action="store_true", help="print every entry as JSON")
    command.add_argument("--ops", action="store_true", help="print a line for each op")
    command.add_argument("--write", metavar="FOLDER", type=Path, help="write coverage.md and "
                         "primitives.md for the backends that tensorplug brings along")  # fmt: skip
    command.set_defaults(run=_coverage)


def _coverage(chosen: argparse.Namespace) -> int:
    from tensorplug.core.dispatch import coverage
    from tensorplug.core.plugins import discovery
    from tensorplug.testing import pages

    discovery.load_all()
    if chosen.write is not None:
        for name, text in pages.all_pages().items():
            (chosen.write / name).write_text(text, encoding="utf-8")
            print(f"wrote {chosen.write / name}")
        return 0
    indices = [index for index in coverage.backends() if fnmatch(index[0], chosen.backend)]
    if not indices:
        known = ", ".join(sorted({name for name, _ in coverage.backends()}))
        return complain(f"no backend matches {chosen.backend!r}; there are {known}")
    entries = coverage.coverage(indices, pages.dtypes_taken())
    found = [entry for entry in entries if fnmatch(entry.op, chosen.op)]
    if not found:
        return complain(no_op(chosen.op))
    if chosen.json:
        print_json([asdict(entry) for entry in found])
        return 0
    for plugin, device in indices:
        own = [entry for entry in found if (entry.backend, entry.device) == (plugin, device)]
        _print_backend(plugin, device, own, by_op=chosen.ops)
    return 0


def _print_backend(plugin: str, device: str, entries: list[Entry], *, by_op: bool) -> None:
    heading(f"{plugin} on {device}: entries of op and dtype")
    rows: list[tuple[str, int, int, int, int]] = []
    for name in dict.fromkeys(entry.op if by_op else entry.family for entry in entries):
        own = [entry for entry in entries if (entry.op if by_op else entry.family) == name]
        rows.append((name, *_counts(own)))
    rows.append(("total", *_counts(entries)))
    table(("op" if by_op else "family", "ops", "kernel", "composite", "missing"), rows)


def _counts(entries: Iterable[Entry]) -> tuple[int, int, int, int]:
    found = list(entries)
    ways = Counter(entry.way for entry in found)
    ops = len({entry.op for entry in found})
    return ops, ways["kernel"], ways["composite"], ways["missing"]
