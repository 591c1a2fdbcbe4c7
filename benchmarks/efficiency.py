"""How well training uses the machine: products, threads, processes side by side, memory, bfloat16.

::

    python -m benchmarks.efficiency --filter 'resnet50|gpt'
    python -m benchmarks.efficiency --full --threads 2

Two lines per network, tensorplug's and torch's, of the quickest of some turns that the libraries take:

- forward, step: milliseconds of inference and of a training step on one thread
- products: the operations of products and convolutions, as tensorplug counts them, over these times, as a
  share of what the best product of two large matrices reaches on one thread
- bf16: a training step under autocast to bfloat16 over one in float32, on one thread
- threads: a step's time on one thread over that on some, times their number: 1 is perfect
- together: a step's time in two processes at once, each with so many threads, over twice that of one alone.
  Above 1 they hinder each other, as teams of threads do that wait busily
- MB, faults: the peak of resident memory, and the page faults of a training step

The exit status is 1 if a network can't run or the losses disagree. Times of threads tell something only on a
machine that does nothing else; the other columns count seconds of the processor.
"""

import argparse
import importlib.util
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import geometric_mean

from .models import PRECISION_TOLERANCES, TOLERANCE, TOLERANCES
from .overhead import about
from .worker import OTHERS, TABLE1, Work, Worker

LIBRARIES = ("tensorplug", "torch")
PRECISION = "bfloat16"
HEADER = (
    f"{'network':12} {'library':11} {'forward':>9} {'step':>9} {'products':>11} {'bf16':>6} "
    f"{'threads':>8} {'together':>9} {'MB':>6} {'faults':>8}"
)


@dataclass
class Row:
    """What one library makes of one network.

    Parameters
    ----------
    network, library : str
    forward, step : float
        Seconds of the processor, on one thread.
    forward_share, step_share : float
        Of the peak of products.
    half : float
        A step under autocast to bfloat16 over one in float32.
    threads : float
        Efficiency of several threads.
    together : float
        How much two processes hinder each other.
    megabytes, faults : float
        Of a training step on one thread.
    """

    network: str
    library: str
    forward: float
    step: float
    forward_share: float
    step_share: float
    half: float
    threads: float
    together: float
    megabytes: float
    faults: float

    def __str__(self) -> str:
        shares = f"{self.forward_share:.0%}, {self.step_share:.0%}"
        return (
            f"{self.network:12} {self.library:11} {self.forward * 1e3:9.1f} {self.step * 1e3:9.1f} "
            f"{shares:>11} {self.half:6.2f} {self.threads:8.2f} {self.together:9.2f} "
            f"{self.megabytes:6.0f} {self.faults:8.0f}"
        )


@contextmanager
def workers(setups: Sequence[tuple[str, Work]]) -> Iterator[list[Worker]]:
    """Start a process per library and work, all with the weights of the first; they end with the block."""
    with ExitStack() as stack:
        started = [stack.enter_context(closing(Worker(*setup))) for setup in setups]
        weights = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "weights.npz"
        started[0].save(weights)
        for worker in started[1:]:
            worker.load(weights)
        yield started


def quickest(turns: Sequence[Callable[[], float]], rounds: int) -> list[float]:
    """Return the least of what each gives, called in turns after a first call that is not counted."""
    for turn in turns:
        turn()
    found = [[turn() for turn in turns] for _ in range(rounds)]
    return [min(times) for times in zip(*found, strict=True)]


def steps_of(worker: Worker, calls: int) -> Callable[[], float]:
    """Return what gives a step's seconds."""
    return lambda: worker.run(calls)[0] / calls


def together(pair: Sequence[Worker], calls: int) -> Callable[[], float]:
    """Return what gives a step's seconds in two processes at once."""

    def run() -> float:
        with ThreadPoolExecutor(len(pair)) as pool:
            return max(pool.map(lambda worker: worker.run(calls)[0], pair)) / calls

    return run


def compare(losses: Sequence[float], tolerance: float, network: str) -> None:
    """Raise if two libraries' losses are too far apart."""
    ours, theirs = losses
    if not abs(ours - theirs) <= tolerance * abs(theirs):
        raise RuntimeError(f"{network}: losses disagree: {ours}, {theirs}")


def measured(work: Work, threads: int, rounds: int, calls: int, peak: float) -> list[Row]:
    """Return the rows of a network, for which the peak of products is given."""
    one = replace(work, threads=1, processor_time=True)
    tolerance = TOLERANCES.get(work.model, TOLERANCE)
    with workers([(n, one) for n in LIBRARIES]) as started:
        for worker in started:
            worker.mode(False)
        compare([worker.run(1)[1] for worker in started], tolerance, work.model)
        forward = quickest([steps_of(worker, calls) for worker in started], rounds)
        for worker in started:
            worker.mode(True)
        step = quickest([steps_of(worker, calls) for worker in started], rounds)
        megabytes = [worker.peak() for worker in started]
        faults = [min(worker.faults() for _ in range(3)) for worker in started]
        operations = started[0].operations()
    with workers([(n, replace(one, precision=PRECISION)) for n in LIBRARIES]) as started:
        losses = [worker.run(1)[1] for worker in started]
        compare(losses, max(tolerance, PRECISION_TOLERANCES[PRECISION]), work.model)
        half = quickest([steps_of(worker, calls) for worker in started], rounds)
    alone, several, both = [], [], []
    for library in LIBRARIES:
        few = replace(work, threads=1)
        many = replace(work, threads=threads)
        with workers([(library, few), (library, many), (library, many)]) as started:
            turns = [steps_of(worker, calls) for worker in started[:2]]
            found = quickest([*turns, together(started[1:], calls)], rounds)
        alone.append(found[0])
        several.append(found[1])
        both.append(found[2])
    return [
        Row(
            work.model,
            library,
            forward[n],
            step[n],
            operations[0] / forward[n] / peak,
            operations[1] / step[n] / peak,
            half[n] / step[n],
            alone[n] / several[n] / threads,
            both[n] / several[n] / 2,
            megabytes[n],
            faults[n],
        )
        for n, library in enumerate(LIBRARIES)
    ]


def product_peak() -> float:
    """Return the operations per second of the best product of two large matrices, on one thread."""
    found = []
    for library in LIBRARIES:
        with closing(Worker(library, Work("mlp", processor_time=True))) as worker:
            found.append(worker.product_peak())
    return max(found)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line; what cannot work ends the program with a message and status 2."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.efficiency", description="How well training uses the machine."
    )
    parser.add_argument("--full", action="store_true", help="networks at their published sizes")
    parser.add_argument(
        "--filter", default="", metavar="PATTERN", help="networks that match a regex"
    )
    parser.add_argument("--threads", type=int, default=2, help="of the last columns (default: 2)")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each library (default: 5)")
    parser.add_argument("--calls", type=int, default=2, help="steps of a turn (default: 2)")
    parser.add_argument("--batch", type=int, help="instead of each network's usual batch")
    parser.add_argument(
        "--out", type=Path, default=Path("out/bench"), help="folder to write (default: out/bench)"
    )
    options = parser.parse_args(arguments)
    for name in ("tensorplug", "torch", "sklearn"):
        if importlib.util.find_spec(name) is None:
            parser.error(f"{name} is not installed here; `make bench` sets up what is needed")
    options.models = [n for n in (*TABLE1, *OTHERS) if re.search(options.filter, n)]
    if not options.models:
        parser.error(f"no network matches {options.filter!r}")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for, and return the exit status."""
    options = parse(arguments)
    peak = product_peak()
    print(f"products: {peak / 1e9:.1f} GFLOP/s\n{HEADER}")
    rows: list[Row] = []
    failed = []
    for name in options.models:
        work = Work(name, options.full, options.batch)
        try:
            found = measured(work, options.threads, options.rounds, options.calls, peak)
        except RuntimeError as error:  # one network that fails must not hide the others
            failed.append(f"{name}: {error}")
            continue
        rows += found
        for row in found:
            print(row, flush=True)
    for library in LIBRARIES if rows else ():
        kept = [row for row in rows if row.library == library]
        means = ", ".join(
            f"{what} {geometric_mean(getattr(row, what) for row in kept):.2f}"
            for what in ("forward_share", "step_share", "half", "threads", "together")
        )
        print(f"geometric means, {library}: {means}")
    options.out.mkdir(parents=True, exist_ok=True)
    target = options.out / "efficiency.json"
    facts = about(options.rounds, 0.0) | {"threads": options.threads, "product_peak": peak}
    cases = [asdict(row) for row in rows]
    target.write_text(json.dumps({**facts, "full": options.full, "rows": cases}, indent=1), "utf-8")
    print(target)
    for message in failed:
        print(f"error: {message}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
