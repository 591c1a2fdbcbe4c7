"""``tensorplug conformance``: run the conformance suite; write a report and a badge."""

from __future__ import annotations

import argparse
import html
import importlib.util
import platform
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import tensorplug
from tensorplug.core.device.device import Device
from tensorplug.core.dispatch.keys import canonical_device
from tensorplug.core.errors import DeviceNotAvailableError
from tensorplug.core.plugins import manager
from tensorplug.serialization.archive import opened_for_writing

from .output import complain, heading, no_op, positive, print_json, table

SUITE = "tensorplug.testing.conformance"
OUTCOMES = ("passed", "failed", "expected", "skipped")


@dataclass(frozen=True, slots=True)
class Case:
    """The outcome of one case of the suite.

    Attributes
    ----------
    kind : str
        What was tested, such as "forward".
    name : str
        The op and dtype, such as "exp-float32"; empty for a case without either.
    outcome : {"passed", "failed", "expected", "skipped"}
        "expected" is a failure that the plugin lists.
    message : str
        The failure's text, or the reason of the others.
    """

    kind: str
    name: str
    outcome: str
    message: str


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "conformance",
        help="prove a device right: run the conformance suite on it",
        description="Run the conformance suite on a device and sum up. Needs pytest. The exit "
        "status is 1 if a case failed.",
    )
    command.add_argument("--device", default="cpu", help="the device under test; cpu unless given")
    command.add_argument("--op", default="*", help="patterns of the ops, such as 'linalg_*,sum'")
    command.add_argument(
        "--every", type=positive, default=1, metavar="N", help="take every Nth case"
    )
    command.add_argument(
        "--processes",
        type=_processes,
        metavar="N",
        help="run in N processes, or auto (pytest-xdist)",
    )
    command.add_argument("--html", type=Path, metavar="FILE", help="write a report")
    command.add_argument("--badge", type=Path, metavar="FILE", help="write a badge, an SVG picture")
    command.add_argument("--json", action="store_true", help="print the summary as JSON")
    command.set_defaults(run=_conformance)


def _processes(text: str) -> str:
    if text != "auto" and not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a number or auto, got {text!r}")
    return text if text == "auto" else str(positive(text))


def _conformance(chosen: argparse.Namespace) -> int:
    try:
        index = canonical_device(Device(chosen.device))
    except (DeviceNotAvailableError, RuntimeError, ValueError) as error:
        return complain(str(error))
    for path in (chosen.html, chosen.badge):
        if path is not None and not path.parent.is_dir():  # rather than after the run
            return complain(f"there is no folder {path.parent}")
    for module, wanted in (("pytest", True), ("xdist", chosen.processes)):
        if wanted and importlib.util.find_spec(module) is None:
            name = {"xdist": "pytest-xdist"}.get(module, module)
            return complain(f"{name} is not installed; pip install {name}")
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "results.xml")
        settings = Path(folder, "pytest.ini")  # so that those of the current folder have no say
        settings.write_text("[pytest]\n")
        command = [sys.executable, "-m", "pytest", "--pyargs", SUITE, "-q", "--tb=short"]
        command += ["-p", "no:cacheprovider", "-c", str(settings), f"--junitxml={results}"]
        command += ["--device", chosen.device, "--op", chosen.op, "--every", str(chosen.every)]
        command += ["-n", chosen.processes] if chosen.processes else []
        output = sys.stderr if chosen.json else None
        status = subprocess.run(command, check=False, stdout=output).returncode
        if not results.exists():
            return complain(f"pytest left no results (exit status {status}): {' '.join(command)}")
        cases = read_results(results)
    if not cases:
        few = "no case is left; lower --every or widen --op"
        return complain(few if chosen.every > 1 else no_op(chosen.op))
    found = summary(str(index), cases, chosen.op, chosen.every)
    if chosen.json:
        print_json(found)
    else:
        heading(f"conformance of {index}" + (f": {_selection(found)}" if _selection(found) else ""))
        table(("case", *OUTCOMES), [(k, *row.values()) for k, row in found["by_kind"].items()])
    for path, text in ((chosen.html, page(found, cases)), (chosen.badge, badge(found))):
        if path is not None:
            with opened_for_writing(path) as file:
                file.write(text.encode())
            print(f"wrote {path}", file=sys.stderr)
    return 0 if status == 0 else 1


def read_results(path: Path) -> list[Case]:
    """Return the cases in a file that ``pytest --junitxml`` wrote."""
    return [_case(element) for element in ET.parse(path).iter("testcase")]


def _case(element: ET.Element) -> Case:
    name = element.get("name", "").removeprefix("test_")
    kind, _, rest = name.partition("[")
    outcome, message = "passed", ""
    for child in element:
        if child.tag in ("failure", "error"):
            outcome, message = "failed", child.text or child.get("message") or ""
            break
        if child.tag == "skipped":
            outcome = "expected" if child.get("type") == "pytest.xfail" else "skipped"
            message = child.get("message") or ""
    return Case(kind, rest.removesuffix("]"), outcome, message)


def summary(device: str, cases: list[Case], op: str = "*", every: int = 1) -> dict[str, Any]:
    """Return who was tested with which cases, and how many ended how, as plain values."""
    kinds = sorted({case.kind for case in cases})
    counts = {kind: Counter(case.outcome for case in cases if case.kind == kind) for kind in kinds}
    by_kind = {kind: {name: count[name] for name in OUTCOMES} for kind, count in counts.items()}
    total = {name: sum(row[name] for row in by_kind.values()) for name in OUTCOMES}
    kind_of_device = device.partition(":")[0]
    return {
        "device": device,
        "tensorplug": tensorplug.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "op": op,
        "every": every,
        "plugins": [
            record.label
            for record in manager.registered()
            if any(kernel.device == kind_of_device for kernel in record.kernels)
        ],
        "by_kind": {**by_kind, "total": total},
    }


def _selection(found: dict[str, Any]) -> str:
    """Return which cases ran, as words; nothing for the whole suite."""
    ops = "" if found["op"] == "*" else f"of {found['op']}"
    every = "" if found["every"] == 1 else f"1 in {found['every']}"
    return " ".join(filter(None, (every, ops)))


# --- the report -----------------------------------------------------------------------------------

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; }
table { border-collapse: collapse; } th, td { padding: .2em .8em; text-align: right; }
th:first-child, td:first-child { text-align: left; } tr:nth-child(even) { background: #8881; }
tr:last-child { font-weight: bold; border-top: 1px solid; }
pre { white-space: pre-wrap; background: #8881; padding: .6em; } .failed { color: #c22; }
@media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd; } }
"""


def page(found: dict[str, Any], cases: list[Case]) -> str:
    """Return the report as an HTML page of its own."""
    head = "".join(f"<th>{title}</th>" for title in ("case", *OUTCOMES))
    rows = "".join(
        f"<tr><td>{kind}</td>{''.join(f'<td>{number:,}</td>' for number in row.values())}</tr>"
        for kind, row in found["by_kind"].items()
    )
    title = f"conformance of {html.escape(found['device'])}"
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style><h1>{title}</h1>"
        f"<p>tensorplug {found['tensorplug']}; kernels of "
        f"{html.escape(', '.join(found['plugins']))}; Python {found['python']}, {found['platform']}; "
        f"{html.escape(_selection(found)) or 'the whole suite'}</p>"
        f"<table><tr>{head}</tr>{rows}</table>{_failures(cases)}{_reasons(cases)}</html>\n"
    )


def _failures(cases: list[Case]) -> str:
    failed = [case for case in cases if case.outcome == "failed"]
    if not failed:
        return "<h2>No failures</h2>"
    items = "".join(
        f"<details><summary>{html.escape(f'{case.kind}/{case.name}')}</summary>"
        f"<pre>{html.escape(case.message)}</pre></details>"
        for case in failed
    )
    return f'<h2 class="failed">{len(failed):,} failures</h2>{items}'


def _reasons(cases: list[Case]) -> str:
    text = ""
    for outcome, title in (("expected", "Expected failures"), ("skipped", "Skipped")):
        reasons = Counter(case.message for case in cases if case.outcome == outcome)
        rows = "".join(
            f"<li>{number:,} × {html.escape(reason)}</li>"
            for reason, number in reasons.most_common()
        )
        text += f"<h2>{title}, with their reasons</h2><ul>{rows}</ul>" if rows else ""
    return text


def badge(found: dict[str, Any]) -> str:
    """Return a picture of the outcome for a README."""
    total = found["by_kind"]["total"]
    failed = total["failed"]
    result = f"{failed:,} failed" if failed else f"{total['passed']:,} passed"
    selection = _selection(found)
    result += f", {selection}" if selection else ""
    label = "tensorplug conformance"
    left, right = 7 * len(label) + 10, 7 * len(result) + 10
    colour = "#c22" if failed else "#2a2"
    result = html.escape(result)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'aria-label="{label}: {result}"><rect width="{left + right}" height="20" rx="3" '
        f'fill="{colour}"/><rect width="{left}" height="20" rx="3" fill="#555"/>'
        '<g fill="#fff" font-family="Verdana,sans-serif" font-size="11" text-anchor="middle">'
        f'<text x="{left / 2}" y="14">{label}</text>'
        f'<text x="{left + right / 2}" y="14">{result}</text></g></svg>\n'
    )
