"""What a profile holds: events, their averages, the table and the trace."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from threading import get_ident
from typing import Any

from tensorplug.core.dispatch.choice import Choice
from tensorplug.core.dispatch.profiling import Entry, Recording
from tensorplug.core.plugins import plugin_label

_COUNT = re.compile(r"(self_)?[a-z]+_time(_total)?")


@dataclass(slots=True, eq=False)
class FunctionEvent:
    """One kernel, copy, range, node or collective that ran.

    Attributes
    ----------
    name : str
        Of a kernel, the op's.
    category : {"kernel", "copy", "range", "node", "collective"}
        A range is what ``record_function`` named, a node a step of a backward pass. A collective is under way
        from its start until this process sees that it is complete.
    device, dtype : str
        Of a kernel or a copy; else empty.
    choice : Choice or None
        Of a kernel, what ``tp.explain`` tells: who ran it, and why.
    ranges : tuple of str
        The ranges around it, the outermost first; in backward those of the forward op.
    is_backward : bool
        Whether it ran in a backward pass.
    thread : int
        From ``threading.get_ident``; 0 for collectives, which go on beside the program.
    start, cpu_time_total, self_cpu_time_total : float
        In microseconds; the start counts from the profile's, self time leaves out the events inside.
    input_shapes : list
        With ``record_shapes=True``, the shapes of the arguments.
    """

    name: str
    category: str
    device: str
    dtype: str
    choice: Choice | None
    ranges: tuple[str, ...]
    is_backward: bool
    thread: int
    start: float
    cpu_time_total: float
    self_cpu_time_total: float
    input_shapes: list[Any]
    count: int = 1

    @property
    def key(self) -> str:
        """The name under which events are added up."""
        return (
            f"{self.name} (backward)"
            if self.category == "range" and self.is_backward
            else self.name
        )

    @property
    def plugin(self) -> str:
        """The plugin whose kernel ran, or the other way in which the op was served."""
        if self.choice is None:
            return ""
        return self.choice.way if self.choice.kernel is None else self.choice.kernel.plugin

    @property
    def cpu_time(self) -> float:
        """Microseconds per call."""
        return self.cpu_time_total / self.count


@dataclass(slots=True, eq=False)
class FunctionEventAvg:
    """All events of one name, device and plugin together.

    Attributes
    ----------
    count : int
        How many there were.
    cpu_time_total, self_cpu_time_total : float
        Microseconds, all events together.
    """

    key: str
    category: str
    device: str
    plugin: str
    input_shapes: list[Any]
    count: int = 0
    cpu_time_total: float = 0.0
    self_cpu_time_total: float = 0.0

    @property
    def cpu_time(self) -> float:
        """Microseconds per call."""
        return self.cpu_time_total / self.count


class EventList(list[Any]):
    """Events, or averages of events, with the ways to show them."""

    wall: float = 0.0  # microseconds that the profile took

    def key_averages(self, group_by_input_shape: bool = False) -> EventList:
        """Return the sums over events of one name, device and plugin."""
        found: dict[Any, FunctionEventAvg] = {}
        for event in self:
            shapes = event.input_shapes if group_by_input_shape else []
            key = event.key, event.category, event.device, event.plugin, repr(shapes)
            if key not in found:
                found[key] = FunctionEventAvg(*key[:4], shapes)
            average = found[key]
            average.count += 1
            average.cpu_time_total += event.cpu_time_total
            average.self_cpu_time_total += event.self_cpu_time_total
        return _listed(found.values(), self.wall)

    def total_average(self) -> FunctionEventAvg:
        """Return the sum over all events; nested ones count once."""
        total = FunctionEventAvg("Total", "", "", "", [])
        for event in self:
            total.count += event.count
            total.self_cpu_time_total += event.self_cpu_time_total
        total.cpu_time_total = total.self_cpu_time_total
        return total

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds in events, nested ones counted once."""
        return sum([event.self_cpu_time_total for event in self])

    def table(
        self, sort_by: str | None = None, row_limit: int = 100, max_name_column_width: int = 55
    ) -> str:
        """Return the events as text, one per line.

        Parameters
        ----------
        sort_by : str, optional
            ``"count"``, ``"cpu_time"`` (per call), ``"cpu_time_total"`` or ``"self_cpu_time_total"``; the
            largest first. Another device type in place of "cpu" lists that device's kernels first.
        row_limit : int
            How many lines at most; -1 for all.
        max_name_column_width : int
            What is longer is cut.

        Raises
        ------
        ValueError
            If `sort_by` is none of these.
        """
        rows = list(self) if sort_by is None else _sorted(self, sort_by)
        kernels = sum([row.self_cpu_time_total for row in rows if row.category == "kernel"])
        own = self.self_cpu_time_total or 1.0
        lines = [
            ("Name", "Device", "Kernel of", "Self %", "Self time", "Total", "Per call", "Calls")
        ]
        for row in rows if row_limit < 0 else rows[:row_limit]:
            name = row.key
            if len(name) > max_name_column_width:
                name = f"{name[: max_name_column_width - 3]}..."
            lines.append(
                (
                    name,
                    row.device,
                    row.plugin,
                    f"{100 * row.self_cpu_time_total / own:.1f}%",
                    _time(row.self_cpu_time_total),
                    _time(row.cpu_time_total),
                    _time(row.cpu_time),
                    str(row.count),
                )
            )
        widths = [max([len(line[column]) for line in lines]) for column in range(8)]
        text = [
            "  ".join(
                [
                    cell.ljust(width) if column < 3 else cell.rjust(width)
                    for column, (cell, width) in enumerate(zip(line, widths, strict=True))
                ]
            ).rstrip()
            for line in lines
        ]
        text.insert(1, "  ".join(["-" * width for width in widths]))
        if len(rows) > len(lines) - 1:
            text.append(f"… {len(rows) - len(lines) + 1} more")
        text.append(f"In kernels: {_time(kernels)} of {_time(self.wall)}")
        return "\n".join(text)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the events as a trace that chrome://tracing and Perfetto show.

        The file appears whole, or, after an error, not at all.
        """
        target = Path(path)
        part = target.with_name(f".{target.name}.{os.getpid()}-{get_ident()}.part")
        try:
            with part.open("w", encoding="utf-8") as file:
                json.dump({"traceEvents": [_trace(event) for event in self]}, file)
            part.replace(target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise

    def __str__(self) -> str:
        return self.table()


def events_of(recording: Recording) -> EventList:
    """Return a recording's entries as events, in the order in which they began."""
    # Of entries that began together the outer one ends later.
    entries = sorted(recording.entries, key=lambda entry: (entry.thread, entry.start, -entry.end))
    inside = [0] * len(entries)
    open_: list[tuple[int, Entry]] = []
    for index, entry in enumerate(entries):
        while open_ and (open_[-1][1].thread != entry.thread or open_[-1][1].end < entry.end):
            open_.pop()
        if open_:
            inside[open_[-1][0]] += entry.end - entry.start
        open_.append((index, entry))
    events = [
        FunctionEvent(
            name=entry.name,
            category=entry.category,
            device="" if entry.key is None else str(entry.key.device),
            dtype="" if entry.key is None else entry.key.dtype.name,
            choice=entry.choice,
            ranges=entry.ranges,
            is_backward=entry.backward,
            thread=entry.thread,
            start=(entry.start - recording.begin) / 1000,
            cpu_time_total=(entry.end - entry.start) / 1000,
            self_cpu_time_total=(entry.end - entry.start - nested) / 1000,
            input_shapes=entry.shapes or [],
        )
        for entry, nested in zip(entries, inside, strict=True)
    ]
    events.sort(key=lambda event: event.start)
    return _listed(events, (recording.end - recording.begin) / 1000)


def _listed(items: Iterable[Any], wall: float) -> EventList:
    result = EventList(items)
    result.wall = wall
    return result


def _sorted(rows: EventList, by: str) -> list[Any]:
    field_ = by
    device = ""
    if _COUNT.fullmatch(by):
        prefix, _, rest = by.removeprefix("self_").partition("_")
        device = "" if prefix == "cpu" else prefix
        field_ = f"{'self_' if by.startswith('self_') else ''}cpu_{rest}"
    if not (field_ == "count" or hasattr(FunctionEvent, field_)):
        raise ValueError(
            f"table(): sort_by must be 'count', 'cpu_time', 'cpu_time_total' or 'self_cpu_time_total', "
            f"got {by!r}"
        )
    return sorted(
        rows,
        key=lambda row: (bool(device) and row.device.startswith(device), getattr(row, field_)),
        reverse=True,
    )


def _time(microseconds: float) -> str:
    for limit, scale, unit in ((1e3, 1.0, "us"), (1e6, 1e3, "ms")):
        if microseconds < limit:
            return f"{microseconds / scale:.3f}{unit}"
    return f"{microseconds / 1e6:.3f}s"


def _trace(event: FunctionEvent) -> dict[str, Any]:
    facts: dict[str, Any] = {"ranges": list(event.ranges), "backward": event.is_backward}
    if event.device:
        facts |= {"device": event.device, "dtype": event.dtype}
    if event.choice is not None:
        kernel = event.choice.kernel
        facts["way"] = event.choice.way
        if kernel is not None:
            facts |= {"plugin": plugin_label(kernel.plugin), "source": kernel.source()}
    if event.input_shapes:
        facts["input shapes"] = event.input_shapes
    return {
        "ph": "X",
        "name": event.key,
        "cat": event.category,
        "ts": event.start,
        "dur": event.cpu_time_total,
        "pid": os.getpid(),
        "tid": event.thread,
        "args": facts,
    }
