"""The report of a page: what passed, what failed, how fast, the worst first."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from .recorder import recorded
from .steps import results

MOST = 15  # rows of each list of the worst
BEGIN, END = "<!-- figures of tools/gpu_report.sh -->", "<!-- end of the figures -->"


def report(out: Path) -> str:
    """Return the report, in Markdown."""
    lines = results(out)
    last = {line["step"]: line for line in lines}
    text = [_machine(last.get("machine", {})), ""]
    text += ["| step | outcome | seconds |", "| --- | --- | ---: |"]
    for name, line in last.items():
        if name != "machine":
            text.append(f"| {name} | {_outcome(out, line)} | {_seconds(lines, name)} |")
    for kind in ("tests", "conformance", "memcheck", "racecheck"):
        text += _failures(out / f"{kind}.jsonl", kind)
    text += _smoke(out / "smoke.log")
    text += _accelerator(out / "bench" / "accelerator.json")
    text += _ratios(sorted((out / "bench").glob("models-*/models.json")), "models")
    text += _ratios([out / "bench" / "kernels.json"], "kernels")
    text += _shares(out / "bench" / "kernels.json")
    for name, line in last.items():
        if not line["passed"] and name not in ("tests", "conformance"):
            text += [
                "",
                f"The end of what `{name}` printed:",
                "",
                "```",
                line.get("end", ""),
                "```",
            ]
    return "\n".join(text) + "\n"


def write_into(page: Path, text: str) -> None:
    """Put the report between the marks of a page."""
    whole = page.read_text("utf-8")
    if whole.count(BEGIN) != 1 or whole.count(END) != 1:
        raise SystemExit(f"{page}: expected one line '{BEGIN}' and one '{END}'")
    before, rest = whole.split(BEGIN)
    page.write_text(f"{before}{BEGIN}\n{text}{END}{rest.split(END)[1]}", encoding="utf-8")


def _machine(line: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in line.get("versions", {}).items())
    return f"{line.get('date', '')}: {line.get('device', 'the host in place of a GPU')}; {versions}"


def _outcome(out: Path, line: dict[str, Any]) -> str:
    tests = recorded(out / f"{line['step']}.jsonl")
    counts = Counter(entry["outcome"] for entry in tests.values())
    told = ", ".join(f"{number:,} {outcome}" for outcome, number in sorted(counts.items()))
    state = "passed" if line["passed"] else "failed"
    if not line.get("finished"):
        state = "not at its end"
    return f"{state}: {told}" if told else state


def _seconds(lines: list[dict[str, Any]], name: str) -> float:
    return round(sum(line.get("seconds", 0) for line in lines if line["step"] == name), 1)


def _failures(path: Path, kind: str) -> list[str]:
    failed = [entry for entry in recorded(path).values() if entry["outcome"] == "failed"]
    if not failed:
        return []
    causes: dict[str, list[str]] = {}
    for entry in failed:
        first = entry.get("error", "").strip().splitlines() or ["no message"]
        causes.setdefault(re.sub(r"\d+", "N", first[0])[:160], []).append(entry["test"])
    rows = sorted(causes.items(), key=lambda pair: -len(pair[1]))
    text = [
        "",
        f"Failures of {kind}, by their first line ({len(failed)} of {len(rows)} kinds):",
        "",
    ]
    text += ["| number | first line | for example |", "| ---: | --- | --- |"]
    for cause, names in rows[:MOST]:
        text.append(
            f"| {len(names)} | {cause.replace('|', '/')} | `{names[0].split('::', 1)[-1]}` |"
        )
    return text


def _smoke(path: Path) -> list[str]:
    checks = (
        [line for line in path.read_text("utf-8").splitlines() if line.startswith('{"check"')]
        if path.exists()
        else []
    )
    text = ["", "| check | passed | seconds | |", "| --- | --- | ---: | --- |"] if checks else []
    for check in map(json.loads, checks):
        says = check["says"].splitlines()[0] if check["says"] else ""
        text.append(
            f"| {check['check']} | {'yes' if check['passed'] else '**no**'} | {check['seconds']} | {says} |"
        )
    return text


def _accelerator(path: Path) -> list[str]:
    if not path.exists():
        return []
    text = [
        "",
        "| | copies, TB/s | products, TFLOP/s | queueing 1,000 products | |",
        "| --- | ---: | --- | --- | --- |",
    ]
    for name, figures in json.loads(path.read_text("utf-8")).items():
        peaks = ", ".join(
            f"{kind} {speed / 1e12:.0f}" for kind, speed in figures["product_peaks"].items()
        )
        queued, done = (
            1e3 * figures.get("queueing", {}).get(f"{what}_seconds", 0)
            for what in ("queued", "done")
        )
        verdicts = "; ".join(
            f"{'' if good else 'NOT: '}{what}" for what, good in figures["verdicts"].items()
        )
        text.append(
            f"| {name} | {figures['copy_bandwidth'] / 1e12:.2f} | {peaks} | "
            f"{queued:.1f} of {done:.1f} ms | {verdicts} |"
        )
    return text


def _shares(path: Path) -> list[str]:
    """Return the kernels that take least of the card's bandwidth, or of its speed in products."""
    facts = json.loads(path.read_text("utf-8")) if path.exists() else {}
    speeds = facts.get("speeds", {})
    large = {name: speed for name, speed in speeds.items() if name.endswith("e+07")}
    rows = sorted(large.items(), key=lambda pair: pair[1]["share"])[:MOST]
    text = [
        "",
        "The least shares of copy bandwidth or of products' speed, of the largest sizes:",
        "",
    ]
    text += ["| case | share |", "| --- | ---: |"]
    return [*text, *[f"| {name} | {speed['share']:.0%} |" for name, speed in rows]] if rows else []


def _ratios(paths: list[Path], suite: str) -> list[str]:
    found = [json.loads(path.read_text("utf-8"))["cases"] for path in paths if path.exists()]
    if not found:
        return []
    cases = [case for some in found for case in some if case["ratio"]]
    slow = sorted((case for case in cases if case["ratio"] > 1), key=lambda case: -case["ratio"])
    text = ["", f"{suite}: {len(cases)} cases, {len(slow)} slower than torch. The slowest:", ""]
    text += ["| case | ratio to torch | milliseconds |", "| --- | ---: | ---: |"]
    for case in slow[:MOST]:
        text.append(
            f"| {case['name']} | {case['ratio']:.2f} | {1e3 * case['tensorplug_seconds']:.3f} |"
        )
    return text
