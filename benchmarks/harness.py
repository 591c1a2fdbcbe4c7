"""Time the same work in two libraries, in one process, in turns, and compare the numbers.

Absolute times depend on the machine and on what else runs there; the ratio of two medians taken in
turns hardly does.
"""

import gc
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import numpy as np

Function = Callable[[], Any]
Clock = Callable[[], float]

COMPARED_CALL = 3  # so that what one call leaves behind (gradients, weights) is compared too
MOST_CALLS = 1_000_000


@dataclass(frozen=True)
class Case:
    """One piece of work.

    Parameters
    ----------
    name : str
        What it is, with its sizes.
    make : callable
        Given a library (the module ``tensorplug`` or ``torch``), sets everything up and returns a
        function without arguments: the part that is timed. It returns the numbers to compare, as a
        tensor or a sequence of tensors.
    tolerance : float
        How far the numbers of the two libraries may be apart.
    """

    name: str
    make: Callable[[Any], Function]
    tolerance: float = 1e-5


@dataclass(frozen=True)
class Result:
    """What came out of one case.

    Parameters
    ----------
    name : str
    ours, theirs : float
        Median seconds per call in tensorplug and in torch.
    difference : float
        The largest difference between their numbers, relative to the largest of torch where that is above 1.
    tolerance : float
        The difference that was allowed.
    error : str
        Why the case could not run, or empty.
    variants : mapping of str to float
        The seconds of torch set up in other ways, by what they are called.
    """

    name: str
    ours: float
    theirs: float
    difference: float
    tolerance: float
    error: str = ""
    variants: Mapping[str, float] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """tensorplug's time over torch's: below 1 is faster."""
        return self.ours / self.theirs

    def ratio_to(self, variant: str) -> float:
        """tensorplug's time over that of torch set up in another way, if the case has that."""
        return self.ours / self.variants.get(variant, self.theirs)

    @property
    def agrees(self) -> bool:
        """Whether the numbers are the same within the tolerance; NaN agrees with nothing."""
        return self.difference <= self.tolerance


def measure(
    case: Case,
    ours: Any,
    theirs: Any,
    rounds: int = 15,
    seconds: float = 0.01,
    clock: Clock = time.perf_counter,
) -> Result:
    """Run one case in two libraries.

    Parameters
    ----------
    case : Case
    ours, theirs : module
        What the case's ``make`` is given.
    rounds : int
        How many times each library gets a turn.
    seconds : float
        How long a turn lasts at least; the number of calls follows from it.
    clock : callable
        Returns the time in seconds.

    Returns
    -------
    Result
        With the error instead of numbers where one of the two raised an exception.
    """
    try:
        difference = largest_difference(case.make(ours), case.make(theirs))
        functions = (case.make(ours), case.make(theirs))
        taken = in_turns(functions, rounds, seconds, clock)
    except Exception as error:  # one case that fails must not hide the others
        message = f"{type(error).__name__}: {error}".splitlines()[0]
        return Result(case.name, math.nan, math.nan, math.nan, case.tolerance, message)
    return Result(case.name, *taken, difference, case.tolerance)


def in_turns(
    functions: tuple[Function, Function], rounds: int, seconds: float, clock: Clock
) -> tuple[float, float]:
    """Return the median seconds per call of two functions that take turns, see :func:`measure`."""
    times: tuple[list[float], list[float]] = ([], [])
    with no_garbage_collection():
        calls = [calls_lasting(seconds, function, clock) for function in functions]
        for turn in range(rounds):
            for which in (0, 1) if turn % 2 == 0 else (1, 0):
                taken = time_calls(functions[which], calls[which], clock)
                times[which].append(taken / calls[which])
    return median(times[0]), median(times[1])


def time_calls(function: Function, calls: int, clock: Clock) -> float:
    """Return the seconds that so many calls take."""
    start = clock()
    for _ in repeat(None, calls):
        function()
    return clock() - start


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Keep the collector, which may strike either library's turn, out of the timing."""
    collecting = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def calls_lasting(seconds: float, function: Function, clock: Clock) -> int:
    """Return how many calls last at least so many seconds, at most a million."""
    calls = 1
    while (taken := time_calls(function, calls, clock)) < seconds and calls < MOST_CALLS:
        missing = seconds / taken if taken > 0 else 10.0
        calls = min(MOST_CALLS, max(2 * calls, math.ceil(calls * min(missing, 10.0))))
    return calls


def largest_difference(ours: Function, theirs: Function) -> float:
    """Return how far apart the results of two functions are after a few calls of each.

    Where the second one has numbers above 1, the distance is relative to its largest.

    Another number of tensors, another shape or another dtype is infinitely far apart.
    """
    for _ in range(COMPARED_CALL - 1):
        ours()
        theirs()
    mine, reference = _arrays(ours()), _arrays(theirs())
    if [(a.shape, a.dtype) for a in mine] != [(a.shape, a.dtype) for a in reference]:
        return math.inf
    pairs = zip(mine, reference, strict=True)
    return max((_distance(a, b) for a, b in pairs if a.size), default=0.0)


def _arrays(value: Any) -> list[np.ndarray]:
    if isinstance(value, (list, tuple)):
        return [array for item in value for array in _arrays(item)]
    if not hasattr(value, "detach"):
        return [np.asarray(value)]
    value = value.detach().cpu()
    return [(value.float() if str(value.dtype).endswith("bfloat16") else value).numpy()]


def _distance(a: np.ndarray, b: np.ndarray) -> float:
    ours, theirs = a.astype(np.float64), b.astype(np.float64)
    return float(np.max(np.abs(ours - theirs))) / max(1.0, float(np.max(np.abs(theirs))))


# --- output ---------------------------------------------------------------------------------------

HEADER = f"{'case':44} {'tensorplug':>12} {'torch':>12} {'ratio':>7}  numbers"


def row(result: Result) -> str:
    """Return a result as a line of the table below `HEADER`."""
    if result.error:
        return f"{result.name:44} {result.error}"
    verdict = "agree" if result.agrees else "DISAGREE"
    return (
        f"{result.name:44} {duration(result.ours):>12} {duration(result.theirs):>12}"
        f" {result.ratio:7.2f}  {verdict} ({result.difference:.0e} of {result.tolerance:.0e})"
    )


def duration(seconds: float) -> str:
    """Return a time with a unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.2f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def mean_ratio(results: Iterable[Result], variant: str = "") -> float:
    """Return the geometric mean of the ratios, to a variant if one is named; NaN if there are none."""
    ratios = [result.ratio_to(variant) for result in results if not result.error]
    return geometric_mean(ratios) if ratios else math.nan


def write_json(path: Path, results: Sequence[Result], about: dict[str, Any]) -> None:
    """Write the results, and what is to be known about the run, as JSON.

    Parameters
    ----------
    path : Path
        The file to write; its folder is made.
    results : sequence of Result
    about : dict
        Versions and settings. What isn't a finite number is written as null.
    """

    def finite(number: float) -> float | None:
        return number if math.isfinite(number) else None

    cases = [
        {
            "name": result.name,
            "tensorplug_seconds": finite(result.ours),
            "torch_seconds": finite(result.theirs),
            "ratio": finite(result.ratio),
            "variants": {
                name: {"torch_seconds": finite(seconds), "ratio": finite(result.ratio_to(name))}
                for name, seconds in result.variants.items()
            },
            "difference": finite(result.difference),
            "tolerance": result.tolerance,
            "agrees": result.agrees,
            "error": result.error,
        }
        for result in results
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {**about, "mean_ratio": finite(mean_ratio(results)), "cases": cases}
    path.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def draw(path: Path, results: Sequence[Result], title: str) -> None:
    """Write the ratios as a bar chart in a PNG file, with a line where the two are equally fast."""
    from matplotlib.figure import Figure

    shown = [result for result in results if not result.error]
    figure = Figure(figsize=(9, 1.5 + 0.24 * len(shown)), dpi=120, layout="constrained")
    axes = figure.subplots()
    ratios = [result.ratio for result in shown]
    colors = ["C2" if ratio <= 1 else "C3" for ratio in ratios]
    widths = [ratio - 1 for ratio in ratios]
    names = [result.name for result in shown]
    bars = axes.barh(names, widths, left=1.0, color=colors, height=0.7)
    axes.bar_label(bars, [f"{ratio:.2f}" for ratio in ratios], padding=3, fontsize=8)
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set_xscale("log", base=2)
    axes.set_xlim(min([0.5, *ratios]) / 1.3, max([2.0, *ratios]) * 1.3)  # room for the labels
    axes.xaxis.set_major_formatter("{x:g}")
    axes.margins(y=0.01)
    axes.invert_yaxis()
    axes.tick_params(axis="y", labelsize=8)
    axes.set(xlabel="time of tensorplug / time of torch (log scale; left is faster)", title=title)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
