"""Measuring how long statements take: ``Timer``, ``Measurement`` and tables of them, ``Compare``."""

from __future__ import annotations

import enum
import math
import statistics
import textwrap
import timeit
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import tensorplug
from tensorplug.core.contexts import Block, Steps

__all__ = [
    "Colorize",
    "Compare",
    "Language",
    "Measurement",
    "TaskSpec",
    "Timer",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "timer",
    "trim_sigfig",
    "unit_to_english",
]

_MOST_FIGURES = 4
_LEAST_INTERVAL = 25e-9  # seconds, of confidence: below it clocks say nothing
_UNSTEADY, _VERY_UNSTEADY = 0.1, 0.25  # interquartile range by median
_UNITS = {"ns": (1e-9, "nanosecond"), "us": (1e-6, "microsecond"), "ms": (1e-3, "millisecond")}
_SECONDS = (1.0, "second")


def timer() -> float:
    """Return the time now, once the accelerator in use is done with what was queued."""
    accelerator = tensorplug.accelerator
    if accelerator.is_available():
        accelerator.synchronize()
    return timeit.default_timer()


def select_unit(t: float) -> tuple[str, float]:
    """Return the unit to show so many seconds in, and what it is in seconds.

    Examples
    --------
    >>> select_unit(2e-5)
    ('us', 1e-06)
    """
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(math.floor(math.log10(t)) // 3, "s")
    return unit, _UNITS.get(unit, _SECONDS)[0]


def unit_to_english(u: str) -> str:
    """Return the word for a unit.

    Examples
    --------
    >>> unit_to_english("us")
    'microsecond'
    """
    return _UNITS.get(u, _SECONDS)[1]


def trim_sigfig(x: float, n: int) -> float:
    """Return a number rounded to `n` significant figures.

    Examples
    --------
    >>> trim_sigfig(1234.0, 2)
    1200.0
    """
    scale = 10.0 ** (math.ceil(math.log10(abs(x))) - n)
    return float(round(x / scale) * scale)


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """Return the elements, each once, in the order in which they come first."""
    return list(dict.fromkeys(elements))


def set_torch_threads(n: int) -> Block:
    """Limit how many threads kernels use within a ``with`` block."""

    def steps() -> tuple[Steps, Steps]:
        before = tensorplug.get_num_threads()
        change = tensorplug.set_num_threads
        return [partial(change, n)], [partial(change, before)]

    return Block(steps)


class Language(enum.Enum):
    """What a statement is written in."""

    PYTHON = 0
    CPP = 1


@dataclass(frozen=True, repr=False)
class TaskSpec:
    """What was measured."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """A heading: the label, or the statement."""
        if self.label is None and "\n" in self.stmt:
            sub = f" ({self.sub_label})" if self.sub_label else ""
            return f"stmt:{sub}\n{textwrap.indent(self.stmt, '  ')}"
        return (self.label or self.stmt) + (f": {self.sub_label}" if self.sub_label else "")

    def setup_str(self) -> str:
        """Return the setup as text, empty if there is none."""
        if not self.setup or self.setup == "pass":
            return ""
        if "\n" in self.setup:
            return f"setup:\n{textwrap.indent(self.setup, '  ')}"
        return f"setup: {self.setup}"

    def summarize(self) -> str:
        """Return title, description and setup, those that there are."""
        parts = [self.title, self.description or "", self.setup_str()]
        return "\n".join([f"{part}\n" if "\n" in part else part for part in parts if part])


_SPEC_FIELDS = frozenset(field.name for field in fields(TaskSpec))


@dataclass(repr=False)
class Measurement:
    """Times of a statement.

    Attributes
    ----------
    number_per_run : int
        How often the statement ran for each of the times.
    raw_times : list of float
        Seconds, of all those runs together.
    task_spec : TaskSpec
        What was measured; its fields are attributes of the measurement, too.
    metadata : dict, optional
        Whatever belongs to it.

    Examples
    --------
    >>> Measurement(10, [1.0, 2.0, 6.0], TaskSpec("f(x)", "")).median
    0.2
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in _SPEC_FIELDS:
            return getattr(self.task_spec, name)
        raise AttributeError(f"'Measurement' object has no attribute {name!r}")

    @property
    def times(self) -> list[float]:
        """Seconds of one run, of each measurement."""
        return [time / self.number_per_run for time in self.raw_times]

    @property
    def median(self) -> float:
        """The median of the times."""
        return self._quantile(0.5)

    @property
    def mean(self) -> float:
        """The mean of the times."""
        return math.fsum(self.times) / len(self.raw_times)

    @property
    def iqr(self) -> float:
        """The interquartile range of the times."""
        return self._quantile(0.75) - self._quantile(0.25)

    def _quantile(self, q: float) -> float:
        ordered = sorted(self.times)
        place = q * (len(ordered) - 1)
        low = ordered[math.floor(place)]
        return low + (ordered[math.ceil(place)] - low) * (place - math.floor(place))

    @property
    def significant_figures(self) -> int:
        """How many figures of the median mean something, by the spread of the middle half."""
        ordered = sorted(self.times)
        middle = ordered[len(ordered) // 4 : math.ceil(3 * len(ordered) / 4)]
        spread = 1.645 * statistics.pstdev(middle) / math.sqrt(len(middle))
        figures = math.floor(math.log10(self.median / max(spread, _LEAST_INTERVAL)))
        return min(max(figures, 1), _MOST_FIGURES)

    def meets_confidence(self, threshold: float = _UNSTEADY) -> bool:
        """Return whether the interquartile range is below a share of the median."""
        return self.iqr / self.median < threshold

    @property
    def has_warnings(self) -> bool:
        """Whether the times vary much."""
        return bool(self.raw_times) and not self.meets_confidence()

    def _warning(self) -> str:
        if not self.has_warnings:
            return ""
        why = "This could indicate system fluctuation."
        if not self.meets_confidence(_VERY_UNSTEADY):
            why = "This suggests significant environmental influence."
        share = self.iqr / self.median * 100
        return (
            f"  WARNING: Interquartile range is {share:.1f}% of the median measurement.\n"
            f"           {why}"
        )

    @property
    def title(self) -> str:
        """The heading of the task."""
        return self.task_spec.title

    @property
    def as_row_name(self) -> str:
        """What a table calls the row of this measurement."""
        return self.sub_label or self.stmt or "[Unknown]"

    def __repr__(self) -> str:
        count = len(self.raw_times)
        unit, scale = select_unit(self.median)
        lines = [object.__repr__(self), self.task_spec.summarize()]
        lines.append(f"  {'Median: ' if count > 1 else ''}{self.median / scale:.2f} {unit}")
        if count >= 4:
            low, high = self._quantile(0.25) / scale, self._quantile(0.75) / scale
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        lines.append(
            f"  {count} measurement{'s' if count > 1 else ''}, {self.number_per_run} runs "
            f"{'per measurement,' if count > 1 else ','} {self.num_threads} "
            f"thread{'s' if self.num_threads > 1 else ''}"
        )
        return "\n".join([*lines, self._warning()]).strip()

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Return one measurement per task, of all of its times."""
        groups: dict[TaskSpec, list[float]] = {}
        for measurement in measurements:
            groups.setdefault(measurement.task_spec, []).extend(measurement.times)
        return [Measurement(1, times, spec) for spec, times in groups.items()]


class Timer:
    """Runs a statement and measures it, as ``timeit.Timer``, with one thread unless more are asked for.

    Parameters
    ----------
    stmt : str
        What is measured, in Python.
    setup : str
        What runs before, once per measurement.
    global_setup : str
        Of C++ only, which is not there.
    timer : callable
        The clock.
    globals : dict, optional
        The names that the statement may use; ``torch`` and ``tp`` are there anyway.
    label, sub_label, description, env : str, optional
        What tables call it: heading, row, column, and a note on where it ran.
    num_threads : int
        How many threads kernels may use.
    language : Language or str
        Python.

    Examples
    --------
    >>> import tensorplug as tp
    >>> measured = Timer("x + x", globals={"x": tp.ones(2)}).timeit(10)
    >>> measured.number_per_run, measured.median > 0
    (10, True)
    """

    _timer_cls = timeit.Timer

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        given: object = stmt
        if not isinstance(given, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language in (Language.CPP, "cpp", "c++"):
            raise NotImplementedError("Timer: statements in C++ are not compiled here; use Python")
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"Invalid language `{language}`.")
        if global_setup:
            raise ValueError(
                f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be "
                "moved to `setup`."
            )
        stmt, setup = [textwrap.dedent(text).removeprefix("\n").rstrip() for text in (stmt, setup)]
        names = {"torch": tensorplug, "tp": tensorplug, **(globals or {})}
        self._timer = self._timer_cls(stmt=stmt, setup=setup, timer=timer, globals=names)
        self._task_spec = TaskSpec(
            stmt, setup, global_setup, label, sub_label, description, env, num_threads
        )

    def _timeit(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def _measured(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self._task_spec)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Return the time of `number` runs, after some that warm up."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(number // 100, 2))
            return self._measured(number, [self._timeit(number)])

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Raise, as in torch: :meth:`blocked_autorange` is better."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callable[[int, float], Any] | None = None) -> None:
        """Raise, as in torch: :meth:`blocked_autorange` is better."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block_size(self, min_run_time: float) -> int:
        """Return how many runs take long enough for the clock's own time not to matter."""
        overhead = statistics.median([self._timeit(0) for _ in range(5)])
        number = 1
        while True:
            time = self._timeit(number)
            enough = overhead / time <= 1e-4 and time >= min_run_time / 1000
            if enough or time > min_run_time or number * 10 > 2147483647:
                return number
            number *= 10

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Return measurements of as many runs as make clocks exact, over `min_run_time` seconds."""
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(min_run_time)
            times: list[float] = []
            while math.fsum(times) < min_run_time:
                self._one(number, times, callback)
        return self._measured(number, times)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """Return measurements until their interquartile range is below a share of the median."""
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(0.05)
            times: list[float] = []
            while math.fsum(times) <= max_run_time:
                self._one(number, times, callback)
                steady = len(times) > 3 and self._measured(number, times).meets_confidence(
                    threshold
                )
                if steady and math.fsum(times) >= min_run_time:
                    break
        return self._measured(number, times)

    def _one(
        self, number: int, times: list[float], callback: Callable[[int, float], Any] | None
    ) -> None:
        times.append(self._timeit(number))
        if callback is not None:
            callback(number, times[-1])

    def collect_callgrind(self, *args: Any, **kwargs: Any) -> Any:
        """Raise: instructions are not counted here; run the program under valgrind."""
        raise NotImplementedError("Timer: run the program under valgrind to count instructions")


class Colorize(enum.Enum):
    """What the best times of a table are compared within."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """A table of measurements: a row per sub-label, a column per description, a heading per label.

    Parameters
    ----------
    results : list of Measurement
        What it shows.

    Examples
    --------
    >>> times = [Measurement(1, [2e-6], TaskSpec("f", "", label="sums", description="here"))]
    >>> str(Compare(times)).splitlines()[0]
    '[---- sums ----]'
    """

    def __init__(self, results: Iterable[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim = False
        self._warn = False
        self._colorize = Colorize.NONE

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements."""
        for result in (added := list(results)):
            given: object = result
            if not isinstance(given, Measurement):
                raise ValueError(
                    f"Expected an instance of `Measurement`, got {type(given)} instead."
                )
        self._results.extend(added)

    def trim_significant_figures(self) -> None:
        """Show only figures that mean something."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Show in colors what is fast and slow within a column, or a row."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Mark times that vary much."""
        self._warn = True

    def print(self) -> None:
        """Print the table."""
        print(str(self))  # noqa: T201

    def __str__(self) -> str:
        groups: dict[Any, list[Measurement]] = {}
        for result in Measurement.merge(self._results):
            groups.setdefault(result.label, []).append(result)
        return "\n".join([self._table(label, results) for label, results in groups.items()])

    def _table(self, label: str | None, results: list[Measurement]) -> str:
        unit, scale = select_unit(min([result.median for result in results]))
        keys = ordered_unique([(r.num_threads, r.env, r.as_row_name) for r in results])
        keys.sort(key=lambda key: (key[0], key[1] or ""))
        columns = ordered_unique([result.description for result in results])
        cells = {((r.num_threads, r.env, r.as_row_name), r.description): r for r in results}
        environments = ordered_unique([str(result.env) for result in results])
        wide = max(map(len, environments)) if len(environments) > 1 else 0
        texts = [["", *[str(name or "") for name in columns]]]
        before: tuple[Any, Any] = (None, None)
        for threads, env, row in keys:
            shown = f"({env})" if wide and (threads, env) != before else ""
            before = threads, env
            texts.append([f"  {shown.ljust(wide + 4)}{row}"])
        for name in columns:
            column = [cells.get((key, name)) for key in keys]
            for text, cell in zip(texts[1:], self._cells(column, scale), strict=True):
                text.append(cell)
        widths = [max(map(len, part)) for part in zip(*texts, strict=True)]
        head = "  |  ".join([t.center(w) for t, w in zip(texts[0], widths, strict=True)])
        lines, threads = [head], None
        for key, text in zip(keys, texts[1:], strict=True):
            if key[0] != threads:
                threads = key[0]
                lines.append(f"{threads} threads: ".ljust(len(head), "-"))
            parts = [text[0].ljust(widths[0])]
            for name, cell, width in zip(columns, text[1:], widths[1:], strict=True):
                parts.append(self._colored(cell.center(width), cells, key, name))
            lines.append("  |  ".join(parts))
        title = f" {label or ''} ".center(len(head) - 2, "-")
        marked = self._warn and any(result.has_warnings for result in results)
        note = "(! XX%) Measurement has high variance, where XX is the IQR / median * 100.\n"
        body = "\n".join(lines)
        end = f"Times are in {unit_to_english(unit)}s ({unit}).\n{note if marked else ''}"
        return f"[{title}]\n{body}\n\n{end}"

    def _cells(self, column: list[Measurement | None], scale: float) -> list[str]:
        there = [result for result in column if result is not None]
        digits = [math.ceil(math.log10(result.median / scale)) for result in there]
        decimals = 1
        if self._trim:
            pairs = zip(there, digits, strict=True)
            decimals = min([max(r.significant_figures - n, 0) for r, n in pairs])
        width = max(digits) + decimals + (1 if decimals else 0)
        marks = 7 if self._warn and any(result.has_warnings for result in there) else 0
        texts = []
        for result in column:
            value, mark = 1.0, ""
            if result is not None:
                value = result.median / scale
                value = trim_sigfig(value, result.significant_figures) if self._trim else value
                if marks and result.has_warnings:
                    mark = f" (! {result.iqr / result.median * 100:.0f}%)"
            text = f"{value:>{width}.{decimals}f}{mark:>{marks}}"
            texts.append(text if result is not None else " " * len(text))
        return texts

    def _colored(self, text: str, cells: Any, key: Any, name: Any) -> str:
        result = cells.get((key, name))
        if self._colorize is Colorize.NONE or result is None:
            return text
        if self._colorize is Colorize.ROWWISE:
            best = min([r.median for (row, _), r in cells.items() if row == key])
        else:  # of the rows with as many threads
            best = min(
                [r.median for (row, n), r in cells.items() if n == name and row[0] == key[0]]
            )
        value, end = result.median, "\033[0m" * 2
        if value <= best * 1.01 or value <= best + 1e-7:
            return f"\033[92m\033[1m{text}{end}"
        if value <= best * 1.1:
            return f"\033[34m\033[1m{text}{end}"
        if value >= best * 5:
            return f"\033[31m\033[1m{text}{end}"
        return f"\033[2m\033[91m{text}{end}" if value >= best * 2 else text
