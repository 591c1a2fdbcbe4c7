"""A plugin of pytest that notes each test's outcome at once, and leaves out what passed before."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest


def _file() -> Path:
    return Path(os.environ["GPU_REPORT_TESTS"])


def recorded(path: Path) -> dict[str, dict[str, str]]:
    """Return the last outcome of each test; a line that was cut off by the end of a slice is left out."""
    found = {}
    for line in path.read_text("utf-8").splitlines() if path.exists() else []:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        found[entry["test"]] = entry
    return found


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leave out the tests that have an outcome; those that failed run once more if that is asked for."""
    again = "GPU_REPORT_AGAIN" in os.environ
    outcomes = recorded(_file()).items()
    done = {test for test, entry in outcomes if not (again and entry["outcome"] == "failed")}
    gone = [item for item in items if item.nodeid in done]
    if gone:
        config.hook.pytest_deselected(items=gone)
        items[:] = [item for item in items if item.nodeid not in done]


def pytest_configure(config: Any) -> None:
    """Note outcomes in the process that gathers those of all workers."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Outcomes())


class _Outcomes:
    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when != "call" and report.outcome == "passed":
            return
        entry = {"test": report.nodeid, "outcome": report.outcome}
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            entry["error"] = (crash.message if crash else str(report.longrepr)).strip()[:2000]
        with _file().open("a", encoding="utf-8") as file:
            file.write("\n" + json.dumps(entry))  # the line before may have been cut off
