"""The overhead suite: what tensorplug adds to its kernels, as a ratio to what torch adds.

::

    python -m benchmarks.overhead
    python -m benchmarks.overhead --quick --filter 'chain|MLP'

Everything runs on one thread. The exit status is 1 if the two libraries' numbers disagree or a case
can't run, never because of a slow ratio.
"""

import argparse
import importlib.util
import os
import platform
import re
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

THREADS = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "VECLIB_MAXIMUM")


def about(rounds: int, seconds: float) -> dict[str, Any]:
    """Return what a reader of the numbers wants to know about the run."""
    plugins = metadata.entry_points(group="tensorplug.v1")
    return {
        "python": platform.python_version(),
        "machine": platform.platform(),
        "versions": {name: metadata.version(name) for name in ("tensorplug", "torch", "numpy")},
        "plugins": sorted(f"{p.name} ({p.dist.name} {p.dist.version})" for p in plugins if p.dist),
        "threads": 1,
        "rounds": rounds,
        "seconds_per_turn": seconds,
    }


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line; what cannot work ends the program with a message and status 2."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.overhead",
        description="Times of tensorplug as ratios to torch, on one thread.",
    )
    parser.add_argument("--quick", action="store_true", help="a rough look: fewer, shorter rounds")
    parser.add_argument("--filter", default="", metavar="PATTERN", help="cases that match a regex")
    parser.add_argument(
        "--out", type=Path, default=Path("out/bench"), help="folder to write (default: out/bench)"
    )
    options = parser.parse_args(arguments)
    try:
        options.filter = re.compile(options.filter, re.IGNORECASE)
    except re.error as error:
        parser.error(f"--filter {options.filter!r} is no regular expression: {error}")
    for name in ("tensorplug", "torch"):
        if importlib.util.find_spec(name) is None:
            parser.error(f"{name} is not installed here; `make bench` sets up what is needed")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for, and return the exit status."""
    options = parse(arguments)
    for library in THREADS:  # read once, when the libraries load: so before the imports below
        os.environ[f"{library}_NUM_THREADS"] = "1"
    import torch

    import tensorplug as tp

    from . import harness
    from .cases import all_cases
    from .imports import STATEMENTS, measure_import

    torch.set_num_threads(1)
    rounds, seconds = (5, 0.002) if options.quick else (15, 0.01)
    cases = [case for case in all_cases() if options.filter.search(case.name)]
    imports = [name for name in STATEMENTS if options.filter.search(name)]
    if not cases and not imports:
        print(f"error: no case matches {options.filter.pattern!r}", file=sys.stderr)
        return 2

    results = []
    print(harness.HEADER)
    for case in cases:
        results.append(harness.measure(case, tp, torch, rounds, seconds))
        print(harness.row(results[-1]), flush=True)
    notes = []
    for name in imports:
        result, note = measure_import(name, 3 if options.quick else 15)
        results.append(result)
        notes.append(note)
        print(harness.row(result), flush=True)

    ran = sum(not result.error for result in results)
    mean = harness.mean_ratio(results)
    summary = f"geometric mean of the ratios of {ran} cases: {mean:.2f}"
    print("", *filter(None, notes), summary, sep="\n")
    json_path, picture = options.out / "overhead.json", options.out / "overhead.png"
    harness.write_json(json_path, results, {**about(rounds, seconds), "notes": notes})
    print(json_path)
    if importlib.util.find_spec("matplotlib") is None:
        print("no picture: matplotlib is not installed")
    else:
        harness.draw(picture, results, f"tensorplug {tp.__version__}, torch {torch.__version__}")
        print(picture)
    bad = [result.name for result in results if not result.agrees]
    if bad:
        print(f"error: numbers disagree, or the case failed: {'; '.join(bad)}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
