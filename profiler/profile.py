"""The profiler: which kernels ran, on which device, from which plugin, for how long."""

from __future__ import annotations

import enum
import functools
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from time import perf_counter_ns
from typing import Any, Self, TypeVar, cast

from tensorplug.core.contexts import OwnContext, Steps
from tensorplug.core.dispatch import profiling
from tensorplug.core.dispatch.profiling import Recording, local

from .events import EventList, FunctionEvent, FunctionEventAvg, events_of

__all__ = [
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]

F = TypeVar("F", bound=Callable[..., Any])


class ProfilerActivity(enum.Enum):
    """Where torch's profiler looks; :class:`profile` sees every kernel, wherever it runs."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


def supported_activities() -> set[ProfilerActivity]:
    """Return where a profiler can look: the host, and what runs on it for all devices."""
    return {ProfilerActivity.CPU}


def kineto_available() -> bool:
    """Return False: torch's library for traces is not used, traces are written without it."""
    return False


class record_function(OwnContext):
    """Name a range of a program: a ``with`` block, or each call of a decorated function.

    A profile shows the range, and with every event the ranges around it. The nodes of a backward pass are
    shown in the ranges in which their forward ops ran. Ranges nest, and belong to their thread.

    Parameters
    ----------
    name : str
        What the range is called.
    args : str, optional
        Shown behind the name.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.ones(3, requires_grad=True)
    >>> with tp.profiler.profile() as p:
    ...     with tp.profiler.record_function("square"):
    ...         y = (x * x).sum()
    ...     y.backward()
    >>> [event.key for event in p.events() if event.category == "range"]
    ['square', 'square (backward)']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        if not isinstance(name, str):
            raise TypeError(f"record_function(): expected a name, got {type(name).__name__}")
        self.name = name if args is None else f"{name}: {args}"

    def _steps(self) -> tuple[Steps, Steps]:
        before = local.ranges
        inside = partial(setattr, local, "ranges", (*before, self.name))
        note = partial(self._note, perf_counter_ns())
        return (inside,), (partial(setattr, local, "ranges", before), note)

    def _note(self, begin: int) -> None:
        recording = profiling.current()
        if recording is not None:
            recording.add("range", self.name, max(begin, recording.begin))

    def __call__(self, function: F) -> F:
        """Return `function` with the range around each of its calls."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name):
                return function(*args, **kwargs)

        return cast(F, call)


class ProfilerAction(enum.Enum):
    """What a profile does in one step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0
) -> Callable[[int], ProfilerAction]:
    """Return what tells a profile which steps to record.

    Parameters
    ----------
    wait, warmup, active : int
        Steps in which nothing is done, in which what was recorded is thrown away, and that are recorded.
    repeat : int
        How often the three follow each other; 0 for without end.
    skip_first : int
        Steps before all that.
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active < 1:
        raise ValueError(
            "schedule(): wait, warmup, repeat and skip_first must not be negative, and active positive; got "
            f"{wait=}, {warmup=}, {active=}, {repeat=}, {skip_first=}"
        )
    cycle = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        step -= skip_first
        if step < 0 or (repeat and step // cycle >= repeat):
            return ProfilerAction.NONE
        index = step % cycle
        if index < wait:
            return ProfilerAction.NONE
        if index < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if index < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


class profile(OwnContext):
    """Record which kernels run, in all threads, within a ``with`` block.

    While no profile is taken nothing is measured: a profile puts timers around the kernels in the tables,
    and takes them out at the end. Events are kernels, copies between devices, the ranges that
    :class:`record_function` names, and the nodes of backward passes. Time between kernels is the
    library's and the program's own; the last line of the table tells how much of the whole was in kernels.

    Parameters
    ----------
    activities : iterable, optional
        Accepted as in torch; all devices are recorded in any case.
    schedule : callable, optional
        From step number to :class:`ProfilerAction`, see :func:`schedule`; without one, all is recorded.
    on_trace_ready : callable, optional
        ``on_trace_ready(profile)`` is called when the steps to record are over.
    record_shapes : bool
        Keep the shapes of the arguments.
    synchronize : bool
        Wait for the device after each kernel. Without, the time of a kernel on a device that works by
        itself is the time that it took to start it.
    enabled : bool
        False turns the whole thing off.

    Raises
    ------
    RuntimeError
        On entering, if a profile is being taken already.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.ones(3, requires_grad=True)
    >>> with tp.profiler.profile() as p:
    ...     (x * x).sum().backward()
    >>> sums = {row.key: row for row in p.key_averages() if row.category == "kernel"}
    >>> sums["mul"].count, sums["mul"].device, sums["mul"].plugin
    (3, 'cpu', 'cpu_numpy')
    >>> print(p.key_averages().table(sort_by="self_cpu_time_total", row_limit=2))  # doctest: +SKIP
    """

    def __init__(
        self,
        activities: Iterable[Any] | bool | None = None,
        *,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        synchronize: bool = False,
        enabled: bool = True,
        **unused: Any,
    ) -> None:
        wanted = sorted(
            [name for name, value in unused.items() if value and name in _WITHOUT_EFFECT]
        )
        unknown = sorted(unused.keys() - _WITHOUT_EFFECT)
        if unknown:
            raise TypeError(f"profile() got an unexpected argument {unknown[0]!r}")
        if wanted:
            warnings.warn(
                f"profile(): {', '.join(wanted)} has no effect here", UserWarning, stacklevel=2
            )
        self.enabled = enabled and activities is not False
        self.schedule = schedule
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self._options = (record_shapes, synchronize)
        self._recording: Recording | None = None
        self._taking: list[bool] = []  # of all its recordings
        self._events: EventList | None = None
        self._action = ProfilerAction.NONE
        self._step: record_function | None = None

    def _steps(self) -> tuple[Steps, Steps]:
        restore_ranges = partial(setattr, local, "ranges", local.ranges)
        return (), (self._taking.clear, restore_ranges, self.stop)

    def __enter__(self) -> Self:
        try:
            super().__enter__()
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self) -> None:
        """Begin; what the ``with`` block does on entering."""
        self._go_on(self._action_now())
        self._name_step()

    def stop(self) -> None:
        """End; what the ``with`` block does on leaving."""
        self._end_step()
        if self._recording is not None:
            self._finish(self._action is not ProfilerAction.WARMUP)
        self._action = ProfilerAction.NONE

    def step(self) -> None:
        """Tell that a step of the schedule is over."""
        self._end_step()
        last, self.step_num = self._action, self.step_num + 1
        action = self._action_now()
        if self._recording is not None and (
            last in (ProfilerAction.RECORD_AND_SAVE, ProfilerAction.WARMUP)
            or action is ProfilerAction.NONE
        ):
            self._finish(last is not ProfilerAction.WARMUP)
        self._go_on(action)
        self._name_step()

    def _action_now(self) -> ProfilerAction:
        if not self.enabled:
            return ProfilerAction.NONE
        return ProfilerAction.RECORD if self.schedule is None else self.schedule(self.step_num)

    def _go_on(self, action: ProfilerAction) -> None:
        self._action = action
        if action is not ProfilerAction.NONE and self._recording is None:
            recording = Recording(*self._options, taking=self._taking)
            profiling.start(recording)
            self._recording = recording

    def _finish(self, keep: bool) -> None:
        recording, self._recording = self._recording, None
        assert recording is not None
        profiling.stop(recording)
        if keep:
            self._events = events_of(recording)
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)

    def _name_step(self) -> None:
        if self.schedule is not None and self._recording is not None:
            self._step = record_function(f"ProfilerStep#{self.step_num}")
            self._step.__enter__()

    def _end_step(self) -> None:
        if self._step is not None:
            self._step.__exit__()
            self._step = None

    # --- what was recorded ---

    def events(self) -> EventList:
        """Return all events, in the order in which they began.

        Raises
        ------
        RuntimeError
            If the profile has not ended.
        """
        if self._events is None:
            raise RuntimeError("profile: there are no events before the end of the `with` block")
        return self._events

    @property
    def function_events(self) -> EventList:
        """All events, as :meth:`events` returns them."""
        return self.events()

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0
    ) -> EventList:
        """Return the sums over events of one name, device and plugin; print its ``table()``."""
        return self.events().key_averages(group_by_input_shape)

    def total_average(self) -> FunctionEventAvg:
        """Return the sum over all events."""
        return self.events().total_average()

    def table(self, sort_by: str | None = None, row_limit: int = 100) -> str:
        """Return all events as text; see :meth:`EventList.table`."""
        return self.events().table(sort_by, row_limit)

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds in events, nested ones counted once."""
        return self.events().self_cpu_time_total

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the events as a trace that chrome://tracing and Perfetto show."""
        self.events().export_chrome_trace(path)


_WITHOUT_EFFECT = frozenset(
    {
        "acc_events", "custom_trace_id_callback", "execution_trace_observer", "experimental_config",
        "post_processing_timeout_s", "profile_memory", "use_cpu", "use_device", "use_kineto",
        "with_flops", "with_modules", "with_stack",
    }
)  # fmt: skip


def tensorboard_trace_handler(
    dir_name: str | os.PathLike[str], worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """Return an ``on_trace_ready`` that writes each trace into a folder, under a name of its own."""
    folder = Path(dir_name)
    worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
    if use_gzip:
        raise NotImplementedError("tensorboard_trace_handler(): use_gzip is not there")

    def write(done: profile) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        done.export_chrome_trace(folder / f"{worker}.{time.time_ns()}.pt.trace.json")

    return write
