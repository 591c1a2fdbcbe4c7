"""The kernel suite: ops at four sizes, as ratios to torch, and as a share of what the machine can do.

That is the speed at which it copies memory, or multiplies matrices, both measured first.

::

    python -m benchmarks.kernels --threads 2
    python -m benchmarks.kernels --quick --filter 'softmax|sum'
    python -m benchmarks.kernels --device cuda

An op that is slower than torch by more than a tenth is listed at the end. The exit status is 1 if the two
libraries' numbers disagree or a case can't run, never because of a slow ratio.
"""

import argparse
import importlib.util
import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .kernel_products import products
from .kernel_work import all_work, count

SIZES = (100, 10_000, 1_000_000, 10_000_000)
SLOWER = 1.1


def copy_bandwidth() -> float:
    """Return the bytes per second that copying a large array reads and writes, at best of some tries."""
    source = np.ones(50_000_000, np.float32)
    target = np.empty_like(source)
    best = min(_timed(lambda: np.copyto(target, source)) for _ in range(7))
    return 2 * source.nbytes / best


def product_peak(*libraries: Any) -> float:
    """Return the operations per second of the product of two large matrices, the best of all tries."""
    side = 2048
    pairs = [library.ones((side, side), dtype=library.float32) for library in libraries]
    best = min(_timed(lambda: x @ x) for x in pairs for _ in range(7))  # noqa: B023
    return 2 * side**3 / best


def _timed(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line; what cannot work ends the program with a message and status 2."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.kernels", description="Times of kernels as ratios to torch."
    )
    parser.add_argument(
        "--quick", action="store_true", help="a rough look: two sizes, short rounds"
    )
    parser.add_argument("--filter", default="", metavar="PATTERN", help="ops that match a regex")
    parser.add_argument("--threads", type=int, default=2, help="of both libraries (default: 2)")
    parser.add_argument("--device", default="cpu", help="of both libraries (default: cpu)")
    parser.add_argument(
        "--out", type=Path, default=Path("out/bench"), help="folder to write (default: out/bench)"
    )
    options = parser.parse_args(arguments)
    try:
        options.filter = re.compile(options.filter, re.IGNORECASE)
    except re.error as error:
        parser.error(f"--filter {options.filter!r} is no regular expression: {error}")
    if options.threads < 1:
        parser.error(f"--threads takes a positive number, got {options.threads}")
    for name in ("tensorplug", "torch"):
        if importlib.util.find_spec(name) is None:
            parser.error(f"{name} is not installed here; `make bench` sets up what is needed")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for, and return the exit status."""
    options = parse(arguments)
    from .overhead import THREADS, about

    for library in THREADS:  # read once, when the libraries load: so before the imports below
        os.environ[f"{library}_NUM_THREADS"] = str(options.threads)
    import torch

    import tensorplug as tp

    from . import devices, harness

    torch.set_num_threads(options.threads)
    tp.set_num_threads(options.threads)
    rounds, seconds = (5, 0.005) if options.quick else (15, 0.02)
    chosen = [work for work in (*all_work(), *products()) if options.filter.search(work.name)]
    if not chosen:
        print(f"error: no op matches {options.filter.pattern!r}", file=sys.stderr)
        return 2
    device, libraries = options.device, (tp, torch)
    if device == devices.HOST:
        bandwidth, peak, sizes = copy_bandwidth(), product_peak(np, torch, tp), SIZES
    else:
        bandwidth = max(devices.copy_bandwidth(device, library) for library in libraries)
        peak = max(devices.product_peaks(device, library)["float32"] for library in libraries)
        sizes = devices.SIZES
    if options.quick:
        sizes = sizes[::2]
    print(f"copy bandwidth: {bandwidth / 1e9:.1f} GB/s; products: {peak / 1e9:.1f} GFLOP/s")
    print(f"{harness.HEADER:100}          speed   share")
    results = []
    speeds = {}
    for work in chosen:
        for size in sizes:
            case = harness.Case(f"{work.name} {size:.0e}", work.make(size, device), work.tolerance)
            clock = devices.clock(device, libraries)
            result = harness.measure(case, tp, torch, rounds, seconds, clock)
            results.append(result)
            if result.error:
                print(harness.row(result), flush=True)
                continue
            if work.operations is None:
                unit, most, done = "GB/s", bandwidth, 4 * work.passes * count(work.shape, size)
            else:
                unit, most, done = "GFLOP/s", peak, work.operations(size)
            speed = done / result.ours
            speeds[result.name] = {unit: speed / 1e9, "share": speed / most}
            print(
                f"{harness.row(result):100} {speed / 1e9:7.1f} {unit:7} {speed / most:5.0%}",
                flush=True,
            )
    slow = [result for result in results if not result.error and result.ratio > SLOWER]
    mean = harness.mean_ratio(results)
    print(f"\ngeometric mean of the ratios of {len(results)} cases: {mean:.2f}")
    print(f"slower than torch by more than a tenth: {len(slow)}")
    for result in sorted(slow, key=lambda result: -result.ratio):
        print(f"  {result.name:40} {result.ratio:.2f}")
    facts = {
        **about(rounds, seconds),
        "threads": options.threads,
        "device": device,
        "copy_bandwidth": bandwidth,
        "product_peak": peak,
        "speeds": speeds,
        "slower": [result.name for result in slow],
    }
    harness.write_json(options.out / "kernels.json", results, facts)
    print(options.out / "kernels.json")
    if importlib.util.find_spec("matplotlib") is None:
        print("no picture: matplotlib is not installed")
    else:
        harness.draw(
            options.out / "kernels.png",
            results,
            f"kernels, {options.threads} threads: tensorplug {tp.__version__}, torch {torch.__version__}",
        )
        print(options.out / "kernels.png")
    bad = [result.name for result in results if not result.agrees]
    if bad:
        print(f"error: numbers disagree, or the case failed: {'; '.join(bad)}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
