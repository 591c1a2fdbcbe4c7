"""What the report runs, and that it ends in time: each step in processes of its own."""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PARTS = ("smoke", "tests", "conformance", "sanitizer", "bench")
BACKEND = Path("backends/cuda_cupy")
LAST_LINES = 25
MODELS = ("mlp", "gpt", "resnet50", "vit", "alexnet", "vgg19", "mobilenet", "gnmt", "ncf")
# The kernels' samples under the tools that look at each access: slow, so the tests of ours alone.
SANITIZED = [
    BACKEND / "tests/test_kernels_on_device.py",
    BACKEND / "tests/test_corners_on_device.py",
]


@dataclass
class Step:
    """One command.

    Attributes
    ----------
    name, part : str
    command : list of str
    tests : str
        The file that its tests are noted in; a step with one goes on where it stopped.
    most : float
        Seconds that it may take in one slice.
    wrong : str
        What a line of the log matches that tells of an error, whatever the tests say.
    """

    name: str
    part: str
    command: list[str]
    tests: str = ""
    most: float = 600.0
    wrong: str = ""


def steps(options: argparse.Namespace) -> Iterator[Step]:
    """Yield the steps in the order in which they tell most."""
    python = sys.executable
    hosted = ["-p", "cuda_on_host.plugin"] if options.hosted else []
    workers = str(options.workers or min(14, os.cpu_count() or 1))
    pytest = [python, "-m", "pytest", "-q", *hosted, "-p", "gpu_report.recorder"]
    yield Step(
        "smoke", "smoke", [python, "-m", "gpu_report.smoke"], most=900 if options.hosted else 180
    )
    yield Step(
        "tests", "tests", [*pytest, "-n", workers, str(BACKEND / "tests")], tests="tests.jsonl"
    )
    yield Step(
        "conformance",
        "conformance",
        [
            *(*pytest, "-n", workers, "--pyargs", "tensorplug.testing.conformance"),
            *("--device", "cuda", "--every", str(options.every)),
        ],
        tests="conformance.jsonl",
    )
    for tool in ("memcheck", "racecheck") if not options.hosted else ():
        yield Step(
            tool,
            "sanitizer",
            [
                *(
                    sanitizer(),
                    "--tool",
                    tool,
                    "--error-exitcode",
                    "9",
                    "--target-processes",
                    "all",
                ),
                *(*pytest, "-n", "0", "-p", "gpu_report.no_pool", *map(str, SANITIZED)),
            ],
            tests=f"{tool}.jsonl",
            most=240,
            wrong=r"^========= .*(Invalid|hazard|Race|Misaligned|Program hit)",
        )
    if options.hosted:
        return
    # A network each, so that a slice's end costs one; the kernels at last, which take longest.
    for suite, options_of_suite in (
        ("accelerator", ()),
        *[("models", ("--filter", f"^{name}", "--plain")) for name in MODELS],
        ("kernels", ("--quick",)),
    ):
        name = f"{suite}-{options_of_suite[1][1:]}" if suite == "models" else suite
        out = options.out / "bench" / (name if suite == "models" else "")
        command = [python, "-m", f"benchmarks.{suite}", "--device", "cuda", "--out", str(out)]
        yield Step(name, "bench", [*command, *options_of_suite], most=480)


def sanitizer() -> str:
    """Return where the toolkit's checker is, on the path or beside nvcc."""
    places = [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"]
    folders = os.pathsep.join(
        [os.environ.get("PATH", ""), *[f"{place}/bin" for place in places if place]]
    )
    return shutil.which("compute-sanitizer", path=folders) or "compute-sanitizer"


def run(options: argparse.Namespace) -> list[str]:
    """Run what is not done yet until the slice's time is over; return the names of what is left."""
    end = time.monotonic() + 60 * options.minutes
    if not options.hosted:
        install(options)
    note(options, {"step": "machine", "passed": True, **machine()})
    last = {line["step"]: line for line in results(options.out)}
    done = {
        name
        for name, line in last.items()
        if line.get("finished") and not (options.again and not line["passed"])
    }
    chosen = [step for step in steps(options) if step.part in options.only]
    left = [step.name for step in chosen if step.name not in done]
    for step in chosen:
        seconds = min(step.most, end - time.monotonic())
        if step.name in done or seconds < 5:
            continue
        line = execute(step, options, seconds)
        note(options, line)
        print(
            f"{step.name}: {'passed' if line['passed'] else 'failed'}, {line['seconds']} s",
            flush=True,
        )
        if line["finished"]:
            left.remove(step.name)
    return left


def install(options: argparse.Namespace) -> None:
    """Install the project into the report's folder, from the tree alone; what is there already stays."""
    site = options.out / "site"
    if site.exists() and not (site / "done").exists():
        shutil.rmtree(site)
    if site.exists():
        return
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-index",
        "--no-deps",
        "--target",
        str(site),
    ]
    start = time.monotonic()
    if options.wheels:
        _checked([*pip, *map(str, sorted(options.wheels.glob("*.whl")))])
    for folder in (".", str(BACKEND)):
        _checked([*pip, "--no-build-isolation", folder])
    (site / "done").touch()
    seconds = round(time.monotonic() - start, 1)
    note(options, {"step": "install", "passed": True, "finished": True, "seconds": seconds})
    print(f"install: {seconds} s", flush=True)


def _checked(command: list[str]) -> None:
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{_end_of(done.stdout)}")


def execute(step: Step, options: argparse.Namespace, seconds: float) -> dict[str, Any]:
    """Run a step, no longer than it may; return its line of the results."""
    log = options.out / f"{step.name}.log"
    environment = {**os.environ, "PYTHONPATH": _path(options), "PYTHONUNBUFFERED": "1"}
    environment.setdefault("CUPY_CACHE_DIR", str(options.out / "kernels"))
    environment.setdefault("OMP_NUM_THREADS", "1" if step.tests else str(os.cpu_count()))
    if options.hosted:
        environment["HOSTED_FOLDER"] = str(options.hosted.absolute())
    if options.again:
        environment["GPU_REPORT_AGAIN"] = "1"
    if step.tests:
        environment["GPU_REPORT_TESTS"] = str(options.out / step.tests)
    start, cut = time.monotonic(), False
    with log.open("a", encoding="utf-8") as file:
        try:
            process = subprocess.Popen(
                step.command,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        except FileNotFoundError as error:
            file.write(f"{error}\n")
            status = 127
        else:
            try:
                status = process.wait(seconds)
            except subprocess.TimeoutExpired:
                cut = True
                os.killpg(process.pid, signal.SIGKILL)
                status = process.wait()
    # pytest says 5 where all tests have their outcome from before.
    passed = status == 0 or (bool(step.tests) and status == 5)
    text = log.read_text("utf-8", errors="replace")
    if step.wrong and re.search(step.wrong, text, re.MULTILINE):
        passed = False
    return {
        "step": step.name,
        "slice": options.slice,
        "passed": passed,
        "finished": not cut,
        "status": status,
        "seconds": round(time.monotonic() - start, 1),
        "end": _end_of(text),
    }


def machine() -> dict[str, Any]:
    """Return what this machine is, as far as can be told without the project."""
    from importlib import metadata

    versions = {"python": platform.python_version()}
    for name in ("numpy", "scipy", "cupy-cuda13x", "cupy-cuda12x", "torch", "nvidia-cudnn-cu13"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    found: dict[str, Any] = {"date": time.strftime("%Y-%m-%d"), "versions": versions}
    if shutil.which("nvidia-smi"):
        query = [
            "nvidia-smi",
            "--query-gpu=name,driver_version,memory.total",
            "--format=csv,noheader",
        ]
        done = subprocess.run(query, capture_output=True, text=True, check=False)
        found["device"] = done.stdout.strip()
    return found


def note(options: argparse.Namespace, line: dict[str, Any]) -> None:
    """Append a line to the results."""
    with (options.out / "results.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def results(out: Path) -> list[dict[str, Any]]:
    """Return the lines of the results."""
    path = out / "results.jsonl"
    return (
        [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []
    )


def _path(options: argparse.Namespace) -> str:
    installed = [] if options.hosted else [str(options.out / "site")]
    return os.pathsep.join([*installed, str(Path("tools").absolute())])


def _end_of(text: str) -> str:
    return "\n".join(text.splitlines()[-LAST_LINES:])
