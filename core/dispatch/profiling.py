"""Recording what runs: kernels, copies between devices, ranges and steps of a backward pass.

Nothing here is looked at while nothing is recorded. A recording makes the tables of kernels resolve anew,
and :mod:`.resolution` then puts each kernel in with a timer around it; at the end they resolve once more.
So every thread is seen, and a backward pass runs as it would otherwise. :mod:`tensorplug.autograd.profiler`
shows what was recorded.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import get_ident
from time import perf_counter_ns
from typing import Any, Literal, NamedTuple

from ..ops import copying
from . import keys
from .choice import Choice
from .keys import DispatchKey
from .state import dispatch_state

Category = Literal["kernel", "copy", "range", "node", "collective"]


class Entry(NamedTuple):
    """One thing that ran.

    Attributes
    ----------
    category : str
        A kernel, a copy from one device to another, a range that the user named, a node of the graph
        in a backward pass, or a collective from its start until it was seen to be complete.
    start, end : int
        From ``time.perf_counter_ns``.
    thread : int
        From ``threading.get_ident``; 0 for collectives, which no thread of this process carries out.
    ranges : tuple of str
        The ranges around it, the outermost first; in a backward pass those around the forward op.
    backward : bool
        Whether it ran in a backward pass.
    choice : Choice or None
        Of a kernel: who runs it, and why.
    key : DispatchKey or None
        Of a kernel: device and dtype. Of a copy: where it went.
    shapes : list or None
        The shapes of the arguments, where that was asked for.
    """

    category: Category
    name: str
    start: int
    end: int
    thread: int
    ranges: tuple[str, ...]
    backward: bool
    choice: Choice | None = None
    key: DispatchKey | None = None
    shapes: list[Any] | None = None


class _Local(threading.local):
    """The open ranges of a thread, and whether it is in a backward pass."""

    ranges: tuple[str, ...] = ()
    backward: bool = False


local = _Local()


@dataclass(slots=True)
class Recording:
    """What ran between a :func:`start` and a :func:`stop`.

    Attributes
    ----------
    taking : list
        Not empty while it is recorded into: a ``with`` block that is interrupted can empty it, but not stop.
    """

    shapes: bool = False
    synchronize: bool = False
    entries: list[Entry] = field(default_factory=list)
    begin: int = 0
    end: int = 0
    thread: int = 0
    taking: list[bool] = field(default_factory=list)

    def add(
        self,
        category: Category,
        name: str,
        begin: int,
        choice: Choice | None = None,
        key: DispatchKey | None = None,
        raw: tuple[Any, ...] = (),
    ) -> None:
        """Record that something ran in this thread from `begin` till now."""
        if self.synchronize and key is not None:
            key.runtime.synchronize(key.device.index or 0)
        end = perf_counter_ns()
        shapes = [_shape(value) for value in raw] if self.shapes and raw else None
        self.entries.append(
            Entry(
                category, name, begin, end, get_ident(), local.ranges, local.backward, choice, key,
                shapes,
            )
        )  # fmt: skip


def _shape(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and any([hasattr(item, "shape") for item in value]):
        return [_shape(item) for item in value]
    return list(getattr(value, "shape", ()))


_current: Recording | None = None


def current() -> Recording | None:
    """Return what is recorded into, if anything is."""
    return _current if _current is not None and _current.taking else None


_listeners: list[Callable[[bool], None]] = []


def on_change(listener: Callable[[bool], None]) -> None:
    """Call `listener(True)` when a recording starts, `listener(False)` when it stops."""
    _listeners.append(listener)


def start(recording: Recording) -> None:
    """Record from now on, in all threads.

    Raises
    ------
    RuntimeError
        If a recording is under way.
    """
    global _current
    with keys.lock:
        if current() is not None:
            raise RuntimeError("profile: a profile is being taken already; they do not nest")
        recording.taking.append(True)
        _current = recording
        dispatch_state.kernel_timer = _timed
        dispatch_state.transfer_timer = _timed_transfer
        keys.reset_tables()
    for listener in _listeners:
        listener(True)
    recording.thread = get_ident()
    recording.begin = perf_counter_ns()


def stop(recording: Recording) -> None:
    """Stop a recording, and take the timers out of the tables."""
    global _current
    recording.taking.clear()
    if recording is not _current:  # an interrupted one, and another has begun
        return
    for listener in _listeners:
        listener(False)
    with keys.lock:
        recording.end = perf_counter_ns()
        _current = None
        dispatch_state.kernel_timer = None
        dispatch_state.transfer_timer = None
        keys.reset_tables()


def _timed(choice: Choice, key: DispatchKey, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel with a timer around it."""
    if choice.way == "meta":
        return function
    name = choice.op

    def run(*raw: Any, **options: Any) -> Any:
        recording = current()
        if recording is None:  # a thread that took it from the table before the end
            return function(*raw, **options)
        begin = perf_counter_ns()
        try:
            return function(*raw, **options)
        finally:
            recording.add("kernel", name, begin, choice, key, raw)

    return run


def _timed_transfer(
    array: Any, source: DispatchKey, target: DispatchKey, non_blocking: bool = False
) -> Any:
    begin = perf_counter_ns()
    try:
        return copying.across(array, source, target, non_blocking)
    finally:
        recording = current()
        if recording is not None:
            name = f"copy {source.device.type} to {target.device.type}"
            recording.add("copy", name, begin, None, target, (array,))
