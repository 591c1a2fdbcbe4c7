"""The kernel suite: ops at four sizes, as ratios to torch, and as a share of what memory can do.

::

    python -m benchmarks.kernels --threads 2
    python -m benchmarks.kernels --quick --filter 'softmax|sum'

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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

SIZES = (100, 10_000, 1_000_000, 10_000_000)
SLOWER = 1.1


@dataclass(frozen=True)
class Work:
    """An op: what it is given, what it does, and how often it reads or writes an element.

    Parameters
    ----------
    name : str
    shape : callable
        Given the number of elements, the shape of each of its arguments.
    run : callable
        Given the library and the arguments, returns the result.
    passes : float
        Arrays of that size that are read or written, of 4 bytes per element.
    tolerance : float
    """

    name: str
    shape: Callable[[int], tuple[int, ...]]
    run: Callable[..., Any]
    passes: float
    arguments: int = 1
    tolerance: float = 1e-4


def flat(n: int) -> tuple[int, ...]:
    return (n,)


def square(n: int) -> tuple[int, ...]:
    return (int(n**0.5), int(n**0.5))


def rows(n: int) -> tuple[int, ...]:
    return (n // 50, 50) if n < 10_000 else (n // 500, 500)


def images(n: int) -> tuple[int, ...]:
    return (1, 4, 5, 5) if n < 10_000 else (n // 10_000, 16, 25, 25)


def functional(lib: Any) -> Any:
    return lib.nn.functional


def trained(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return forward and backward of a function of the library and one tensor."""

    def run(lib: Any, x: Any) -> Any:
        leaf = x.detach().requires_grad_()
        result = function(lib, leaf)
        result.backward(result.detach())
        return leaf.grad

    return run


def all_work() -> list[Work]:
    def unary(name: str, passes: float = 2) -> Work:
        return Work(name, flat, lambda lib, x: getattr(lib, name)(x), passes)

    def activation(name: str, **options: Any) -> Work:
        return Work(name, flat, lambda lib, x: getattr(functional(lib), name)(x, **options), 2)

    def binary(name: str, passes: float = 3) -> Work:
        return Work(name, flat, lambda lib, x, y: getattr(lib, name)(x, y), passes, 2)

    def learned(name: str, function: Any, shape: Any, passes: float) -> Work:
        return Work(f"{name} fw+bw", shape, trained(function), passes, tolerance=1e-3)

    return [
        *[binary(name) for name in ("add", "sub", "mul", "maximum", "atan2")],
        Work("div", flat, lambda lib, x, y: x / (y * y + 1), 7, 2),
        binary("lt", 2.25),
        Work("add number", flat, lambda lib, x: x + 2.0, 2),
        Work("add row", square, lambda lib, x: x + x[0], 2),
        Work("add column", square, lambda lib, x: x + x[:, :1], 2),
        Work("add transposed", square, lambda lib, x: x + x.t(), 3),
        Work("where", flat, lambda lib, x, y: lib.where(x > 0, x, y), 4.5, 2),
        Work("pow 2.5", flat, lambda lib, x: (x * x) ** 2.5, 2, tolerance=1e-2),
        *[unary(name) for name in ("neg", "abs", "relu", "floor", "exp", "expm1", "tanh")],
        *[unary(name) for name in ("sigmoid", "sin", "cos", "erf")],
        Work("log", flat, lambda lib, x: lib.log(x * x + 0.1), 6),
        Work("sqrt", flat, lambda lib, x: lib.sqrt(x * x), 4),
        *[activation(name) for name in ("gelu", "silu", "softplus", "leaky_relu", "elu")],
        *[activation(name) for name in ("hardswish", "mish", "logsigmoid")],
        Work("gelu tanh", flat, lambda lib, x: functional(lib).gelu(x, approximate="tanh"), 2),
        Work("copy", flat, lambda lib, x: x.clone(), 2),
        Work("transpose copy", square, lambda lib, x: x.t().contiguous(), 2),
        Work("to float64", flat, lambda lib, x: x.double(), 3),
        Work("to bfloat16", flat, lambda lib, x: x.bfloat16().float(), 3),
        Work("sum", flat, lambda lib, x: x.sum(), 1, tolerance=1),
        Work("sum rows", square, lambda lib, x: x.sum(1), 1, tolerance=1e-2),
        Work("sum columns", square, lambda lib, x: x.sum(0), 1, tolerance=1e-2),
        Work("mean", flat, lambda lib, x: x.mean(), 1),
        Work("amax rows", square, lambda lib, x: x.amax(1), 1),
        Work("argmax rows", square, lambda lib, x: x.argmax(1), 1),
        Work("var rows", square, lambda lib, x: x.var(1), 1),
        Work("cumsum rows", square, lambda lib, x: x.cumsum(1), 2, tolerance=1e-2),
        Work("softmax rows", rows, lambda lib, x: x.softmax(1), 2),
        Work("softmax columns", rows, lambda lib, x: x.softmax(0), 2),
        Work("log_softmax rows", rows, lambda lib, x: x.log_softmax(1), 2),
        Work("cat", flat, lambda lib, x, y: lib.cat([x, y]), 4, 2),
        Work("layer_norm", rows, lambda lib, x: functional(lib).layer_norm(x, (x.shape[1],)), 2),
        Work(
            "batch_norm",
            images,
            lambda lib, x: functional(lib).batch_norm(x, None, None, training=True),
            2,
        ),
        learned("gelu", lambda lib, x: functional(lib).gelu(x), flat, 5),
        learned("silu", lambda lib, x: functional(lib).silu(x), flat, 5),
        learned("softmax", lambda lib, x: x.softmax(1), rows, 5),
        learned("log_softmax", lambda lib, x: x.log_softmax(1), rows, 5),
        learned("layer_norm", lambda lib, x: functional(lib).layer_norm(x, (x.shape[1],)), rows, 5),
    ]


def make(work: Work, size: int) -> Callable[[Any], Callable[[], Any]]:
    """Return the part of a case that sets it up in a library."""
    generator = np.random.default_rng(0)
    arrays = [
        generator.standard_normal(work.shape(size), dtype=np.float32) for _ in range(work.arguments)
    ]

    def set_up(lib: Any) -> Callable[[], Any]:
        tensors = [lib.from_numpy(array.copy()) for array in arrays]
        return lambda: work.run(lib, *tensors)

    return set_up


def copy_bandwidth() -> float:
    """Return the bytes per second that copying a large array reads and writes, at best of some tries."""
    source = np.ones(50_000_000, np.float32)
    target = np.empty_like(source)
    best = min(_timed(lambda: np.copyto(target, source)) for _ in range(7))
    return 2 * source.nbytes / best


def _timed(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line; what cannot work ends the program with a message and status 2."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.kernels", description="Times of kernels as ratios to torch."
    )
    parser.add_argument("--quick", action="store_true", help="a rough look: fewer, shorter rounds")
    parser.add_argument("--filter", default="", metavar="PATTERN", help="ops that match a regex")
    parser.add_argument("--threads", type=int, default=2, help="of both libraries (default: 2)")
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

    from . import harness

    torch.set_num_threads(options.threads)
    tp.set_num_threads(options.threads)
    rounds, seconds = (5, 0.005) if options.quick else (15, 0.02)
    chosen = [work for work in all_work() if options.filter.search(work.name)]
    if not chosen:
        print(f"error: no op matches {options.filter.pattern!r}", file=sys.stderr)
        return 2
    bandwidth = copy_bandwidth()
    print(f"copy bandwidth: {bandwidth / 1e9:.1f} GB/s")
    print(harness.HEADER, "  GB/s  of copy")
    results = []
    speeds = {}
    for work in chosen:
        for size in SIZES:
            case = harness.Case(f"{work.name} {size:.0e}", make(work, size), work.tolerance)
            result = harness.measure(case, tp, torch, rounds, seconds)
            results.append(result)
            elements = np.prod(work.shape(size), dtype=np.int64)
            speed = 4 * work.passes * float(elements) / result.ours
            speeds[result.name] = {"GB/s": speed / 1e9, "share_of_copy": speed / bandwidth}
            print(harness.row(result), f"{speed / 1e9:6.1f} {speed / bandwidth:6.0%}", flush=True)
    slow = [result for result in results if not result.error and result.ratio > SLOWER]
    mean = harness.mean_ratio(results)
    print(f"\ngeometric mean of the ratios of {len(results)} cases: {mean:.2f}")
    print(f"slower than torch by more than a tenth: {len(slow)}")
    for result in sorted(slow, key=lambda result: -result.ratio):
        print(f"  {result.name:40} {result.ratio:.2f}")
    facts = {
        **about(rounds, seconds),
        "threads": options.threads,
        "copy_bandwidth": bandwidth,
        "speeds": {name: speed for name, speed in speeds.items() if np.isfinite(speed["GB/s"])},
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
