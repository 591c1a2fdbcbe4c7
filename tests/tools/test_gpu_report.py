"""The report from a machine with a GPU, as far as it can be tested without one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
import os, pytest

def test_right(): pass
def test_wrong(): assert "MENDED" in os.environ
def test_left_out(): pytest.skip("why")
"""


@pytest.fixture(autouse=True)
def tools(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")


def report(*arguments, **environment):
    command = [ROOT / "tools" / "gpu_report.sh", *map(str, arguments)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHON": sys.executable, **environment},
    )


def test_bad_options_end_it_before_anything_runs(tmp_path):
    done = report("--only", "smoke,nosuch", "--out", tmp_path / "out")
    assert done.returncode == 2
    assert (
        "no part is called nosuch; there are smoke, tests, conformance, sanitizer, bench"
        in done.stderr
    )
    done = report("--hosted", tmp_path, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert f"{tmp_path} has no driver; python -m cuda_on_host.build builds one" in done.stderr
    assert not (tmp_path / "out").exists()


def run_recorded(tmp_path, *options, **environment):
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "gpu_report.recorder",
        *options,
        tmp_path,
    ]
    variables = {
        "PYTHONPATH": str(ROOT / "tools"),
        "GPU_REPORT_TESTS": str(tmp_path / "tests.jsonl"),
    }
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables, **environment},
    )
    lines = (tmp_path / "tests.jsonl").read_text().splitlines()
    return done.returncode, [json.loads(line) for line in lines if line.endswith("}")]


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_run_goes_on_where_the_last_one_stopped(tmp_path, workers):
    options = ["-n", workers]
    # A slice that ended within a line.
    done = json.dumps({"test": "test_some.py::test_right", "outcome": "passed"})
    (tmp_path / "tests.jsonl").write_text(f'\n{done}\n{{"test": "test_so')
    status, entries = run_recorded(tmp_path, *options)
    assert (status, len(entries)) == (1, 3)
    from gpu_report.recorder import recorded

    outcomes = {
        test.split("::")[1]: entry for test, entry in recorded(tmp_path / "tests.jsonl").items()
    }
    assert {name: entry["outcome"] for name, entry in outcomes.items()} == {
        "test_right": "passed",
        "test_wrong": "failed",
        "test_left_out": "skipped",
    }
    assert "MENDED" in outcomes["test_wrong"]["error"]
    status, entries = run_recorded(tmp_path, *options)
    assert (status, len(entries)) == (5, 3)  # nothing is left to run
    status, entries = run_recorded(tmp_path, *options, GPU_REPORT_AGAIN="1", MENDED="1")
    assert (status, len(entries)) == (0, 4)
    assert entries[-1] == {"test": "test_some.py::test_wrong", "outcome": "passed"}


def test_a_step_ends_with_its_time(tmp_path):
    from gpu_report import steps
    from gpu_report.__main__ import parse

    options = parse(["--out", str(tmp_path)])
    waits = "import os; os.read(os.pipe()[0], 1)"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', '{waits}'])"
    line = steps.execute(
        steps.Step("endless", "smoke", [sys.executable, "-c", child]), options, 0.5
    )
    assert (line["passed"], line["finished"]) == (False, False)


def test_what_a_checker_prints_fails_its_step(tmp_path):
    from gpu_report import steps
    from gpu_report.__main__ import parse

    options = parse(["--out", str(tmp_path), "--only", "sanitizer"])
    checks = [step for step in steps.steps(options) if step.part == "sanitizer"]
    assert [step.name for step in checks] == ["memcheck", "racecheck"]
    for text, passed in (
        ("========= Invalid __global__ read of size 4", False),
        ("========= Error: Race reported between Write access", False),
        ("========= ERROR SUMMARY: 0 errors", True),
    ):
        step = steps.Step("some", "sanitizer", ["echo", text], wrong=checks[0].wrong)
        (tmp_path / "some.log").unlink(missing_ok=True)
        assert steps.execute(step, options, 60)["passed"] == passed
    line = steps.execute(steps.Step("absent", "sanitizer", ["no-such-checker"]), options, 60)
    assert (line["passed"], line["finished"], line["status"]) == (False, True, 127)
    assert "no-such-checker" in line["end"]


def test_the_report_tells_the_worst_first(tmp_path):
    from gpu_report import summary

    lines = [
        {
            "step": "machine",
            "passed": True,
            "date": "2026-01-02",
            "device": "a card",
            "versions": {"numpy": "2"},
        },
        {"step": "tests", "passed": False, "finished": False, "seconds": 100.0},
        {"step": "tests", "passed": False, "finished": True, "seconds": 20.5},
        {
            "step": "memcheck",
            "passed": False,
            "finished": True,
            "seconds": 3,
            "end": "Invalid __global__ read",
        },
    ]
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    failures = [("a::one", "off by 3"), ("a::two", "no engine"), ("a::three", "off by 12")]
    tests = [{"test": "a::fine", "outcome": "passed"}]
    tests += [{"test": test, "outcome": "failed", "error": error} for test, error in failures]
    (tmp_path / "tests.jsonl").write_text("".join(json.dumps(line) + "\n" for line in tests))
    (tmp_path / "bench").mkdir()
    cases = [("fast", 0.5), ("slow", 1.5), ("slower", 3.0)]
    cases = [{"name": name, "ratio": ratio, "tensorplug_seconds": 0.001} for name, ratio in cases]
    (tmp_path / "bench" / "kernels.json").write_text(json.dumps({"cases": cases}))
    text = summary.report(tmp_path)
    assert text.startswith("2026-01-02: a card; numpy 2\n")
    assert "| tests | failed: 3 failed, 1 passed | 120.5 |" in text
    assert "| 2 | off by N | `one` |\n| 1 | no engine | `two` |" in text
    assert "kernels: 3 cases, 2 slower than torch" in text
    assert text.index("| slower | 3.00 | 1.000 |") < text.index("| slow | 1.50 | 1.000 |")
    assert "Invalid __global__ read" in text

    page = tmp_path / "page.md"
    page.write_text(f"before\n{summary.BEGIN}\nold\n{summary.END}\nafter\n")
    summary.write_into(page, text)
    summary.write_into(page, text)
    assert page.read_text() == f"before\n{summary.BEGIN}\n{text}{summary.END}\nafter\n"
    page.write_text("no marks")
    with pytest.raises(SystemExit, match="expected one line"):
        summary.write_into(page, text)
    assert (ROOT / "docs" / "gpu.md").read_text().count(summary.BEGIN) == 1
