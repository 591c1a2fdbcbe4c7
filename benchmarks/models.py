"""The model suite: training steps and inference of whole networks, as ratios to torch.

::

    python -m benchmarks.models --quick
    python -m benchmarks.models --threads 2 --filter 'resnet|vit'
    python -m benchmarks.models --channels-last --filter 'resnet50'

Six of the networks are those of `examples/table1`, three more stand in `networks.py`. Both libraries start
from the same weights and see the same batch. Torch runs as it is, then with images in channels_last order,
and with a C library that keeps its memory; tensorplug runs as it is. All take turns. The exit status is 1 if
losses disagree or a case can't run, never because of a slow ratio.
"""

import argparse
import importlib.util
import math
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any

from . import devices, harness, overhead
from .harness import Result
from .worker import OTHERS, TABLE1, Work, Worker

IMAGES = ("alexnet", "vgg19", "resnet50", "mobilenet", "vit")
VARIANTS: dict[str, dict[str, Any]] = {
    "channels_last": {"channels_last": True},
    "malloc tuned": {"malloc_tuned": True},
}
HEADER = f"{harness.HEADER:100} {'peak MB (torch)':>18}" + "".join(f" {v:>13}" for v in VARIANTS)
COMPARED_STEPS = 2  # so that the second loss tells of the first gradients
# Relative differences of these losses. Batch normalisation over few values, many times in a
# row, makes of a rounding error in float32 some per cent of the next loss.
TOLERANCE = 1e-3
TOLERANCES = {"resnet50": 0.1, "mobilenet": 0.1}
# Of losses that were computed with fewer digits.
PRECISION_TOLERANCES = {"tf32": 2e-2, "bfloat16": 0.1, "float16": 0.1}

Peaks = tuple[float, float]


def measure(
    work: Work,
    rounds: int,
    seconds: float,
    start: Callable[[str, Work], Worker] = Worker,
    variants: Sequence[str] = (),
) -> Iterator[tuple[Result, Peaks]]:
    """Run one network in both libraries, in turns: first inference, then training steps.

    Each variant is one more process with torch.

    Parameters
    ----------
    work : Work
    rounds : int
        How many turns each library gets.
    seconds : float
        How long a turn lasts at least.
    start : callable
        Given a library's name and the work, starts what runs it.
    variants : sequence of str
        Which of `VARIANTS` run too.

    Yields
    ------
    result : Result
        With the error instead of numbers where one of the two failed.
    peaks : tuple of float
        Megabytes of memory of tensorplug's process and of torch's.
    """
    how = "" if work.precision == "float32" else f" {work.precision}"
    how += " channels last" if work.channels_last and work.device != devices.HOST else ""
    titles = [f"{work.model}{how}, {kind}" for kind in ("inference", "training step")]
    tolerance = max(
        TOLERANCES.get(work.model, TOLERANCE), PRECISION_TOLERANCES.get(work.precision, 0.0)
    )
    try:
        with ExitStack() as stack:
            setups = [work, work, *[replace(work, **VARIANTS[name]) for name in variants]]
            workers = [
                stack.enter_context(closing(start("torch" if number else "tensorplug", setup)))
                for number, setup in enumerate(setups)
            ]
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            weights = Path(folder) / "weights.npz"
            workers[0].save(weights)
            for worker in workers[1:]:
                worker.load(weights)
            for training, title in zip((False, True), tuple(titles), strict=True):
                yield _in_turns(workers, variants, training, title, rounds, seconds, tolerance)
                titles.pop(0)
    except RuntimeError as error:
        message = str(error).splitlines()[0]
        for title in titles:
            yield Result(title, math.nan, math.nan, math.nan, tolerance, message), (0.0, 0.0)


def _in_turns(
    workers: list[Worker],
    variants: Sequence[str],
    training: bool,
    title: str,
    rounds: int,
    seconds: float,
    tolerance: float,
) -> tuple[Result, Peaks]:
    for worker in workers:
        worker.mode(training)
    first = [[worker.run(1) for _ in range(COMPARED_STEPS)] for worker in workers]
    ours, *others = [[loss for _, loss in runs] for runs in first]
    difference = max(
        abs(mine - its) / abs(its)
        for theirs in others
        for mine, its in zip(ours, theirs, strict=True)
    )
    calls = [
        max(1, math.ceil(seconds / max(1e-6, min(taken for taken, _ in runs)))) for runs in first
    ]
    times: list[list[float]] = [[] for _ in workers]
    for turn in range(rounds):
        for which in range(len(workers))[:: 1 if turn % 2 == 0 else -1]:
            times[which].append(workers[which].run(calls[which])[0] / calls[which])
    peaks = (workers[0].peak(), workers[1].peak())
    mine, theirs, *more = [median(taken) for taken in times]
    found = dict(zip(variants, more, strict=True))
    return Result(title, mine, theirs, difference, tolerance, variants=found), peaks


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line; what cannot work ends the program with a message and status 2."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.models",
        description="Times of whole networks in tensorplug as ratios to torch.",
    )
    parser.add_argument("--quick", action="store_true", help="small networks and fewer rounds")
    parser.add_argument(
        "--filter", default="", metavar="PATTERN", help="networks that match a regex"
    )
    parser.add_argument("--threads", type=int, default=1, help="in each library (default: 1)")
    parser.add_argument("--rounds", type=int, help="turns of each library")
    parser.add_argument("--batch", type=int, help="instead of each network's usual batch")
    parser.add_argument("--device", default="cpu", help="of both libraries (default: cpu)")
    parser.add_argument(
        "--precision",
        action="append",
        choices=devices.PRECISIONS,
        help="of both libraries, several times if wanted (default: float32, on other devices than the "
        "CPU also tf32 and bfloat16)",
    )
    parser.add_argument(
        "--channels-last", action="store_true", help="weights and images in channels_last order"
    )
    parser.add_argument(
        "--plain",
        action="store_true",
        help="compare with torch as it is only, not with its variants",
    )
    parser.add_argument(
        "--processor-time",
        action="store_true",
        help="count seconds on a processor, where other programs keep the machine busy",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("out/bench"), help="folder to write (default: out/bench)"
    )
    options = parser.parse_args(arguments)
    try:
        options.filter = re.compile(options.filter, re.IGNORECASE)
    except re.error as error:
        parser.error(f"--filter {options.filter!r} is no regular expression: {error}")
    for name in ("threads", "rounds", "batch"):
        value = getattr(options, name)
        if value is not None and value < 1:
            parser.error(f"--{name} must be at least 1, got {value}")
    for name in ("tensorplug", "torch", "sklearn"):
        if importlib.util.find_spec(name) is None:
            parser.error(f"{name} is not installed here; `make bench` sets up what is needed")
    options.models = [name for name in (*TABLE1, *OTHERS) if options.filter.search(name)]
    if not options.models:
        parser.error(f"no network matches {options.filter.pattern!r}")
    return options


def works(options: argparse.Namespace) -> Iterator[Work]:
    """Yield what is to run: off the CPU in several precisions, and images in both orders."""
    there = options.device != devices.HOST
    precisions = options.precision or (("float32", "tf32", "bfloat16") if there else ("float32",))
    for name in options.models:
        both = there and name in IMAGES and not options.channels_last
        for precision in precisions:
            for channels_last in (False, True) if both else (options.channels_last,):
                yield Work(
                    name,
                    not options.quick,
                    options.batch,
                    options.threads,
                    channels_last,
                    options.processor_time,
                    options.device,
                    precision=precision,
                )


def variants_of(work: Work, options: argparse.Namespace) -> list[str]:
    """Return the variants of torch that a network is compared with."""
    if options.plain or work.device != "cpu":
        return []
    without = set() if work.model in IMAGES and not work.channels_last else {"channels_last"}
    return [name for name in VARIANTS if name not in without]


def row(result: Result, peak: Peaks) -> str:
    """Return a line of the table below `HEADER`."""
    if result.error:
        return harness.row(result)
    ratios = [
        f"{result.ratio_to(name):13.2f}" if name in result.variants else 13 * " "
        for name in VARIANTS
    ]
    memory = f"{peak[0]:.0f} ({peak[1]:.0f})"
    return " ".join([f"{harness.row(result):100} {memory:>18}", *ratios]).rstrip()


def summaries(results: Sequence[Result]) -> dict[str, float]:
    """Return geometric means of ratios: to torch, and to each of its variants where it has one."""
    steps = [result for result in results if result.name.endswith("training step")]
    six = [result for result in steps if result.name.startswith(TABLE1)]
    groups = {"training steps of Table 1's networks": six, "all training steps": steps}
    return {
        f"{what}, to torch {variant}".rstrip(): harness.mean_ratio(some, variant)
        for what, some in groups.items()
        for variant in ("", *VARIANTS)
        if some
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for, and return the exit status."""
    options = parse(arguments)
    rounds = options.rounds or (5 if options.quick else 7)
    seconds = 0.05 if options.quick else 0.2
    results: list[Result] = []
    peaks: dict[str, Peaks] = {}
    print(HEADER)
    for work in works(options):
        for result, peak in measure(work, rounds, seconds, variants=variants_of(work, options)):
            results.append(result)
            peaks[result.name] = peak
            print(row(result, peak), flush=True)

    mean = harness.mean_ratio(results)
    print(f"\ngeometric mean of the ratios of {len(results)} cases: {mean:.2f}")
    means = summaries(results)
    for what, ratio in means.items():
        print(f"{what}: {ratio:.2f}")
    about = {
        **overhead.about(rounds, seconds),
        "threads": options.threads,
        "sizes": "small" if options.quick else "full",
        "channels_last": options.channels_last,
        "batch": options.batch,
        "device": options.device,
        "precisions": options.precision,
        "processor_time": options.processor_time,
        "peak_megabytes": peaks,
        "means": {what: ratio for what, ratio in means.items() if math.isfinite(ratio)},
    }
    json_path, picture = options.out / "models.json", options.out / "models.png"
    harness.write_json(json_path, results, about)
    print(json_path)
    if importlib.util.find_spec("matplotlib") is None:
        print("no picture: matplotlib is not installed")
    else:
        versions = [f"{name} {metadata.version(name)}" for name in ("tensorplug", "torch")]
        harness.draw(picture, results, f"{', '.join(versions)}, {options.threads} threads")
        print(picture)
    bad = [result.name for result in results if not result.agrees]
    if bad:
        print(f"error: losses disagree, or the case failed: {'; '.join(bad)}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
