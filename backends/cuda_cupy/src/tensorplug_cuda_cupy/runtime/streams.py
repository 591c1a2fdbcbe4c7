"""Streams and events, as ``tp.cuda`` shows them."""

from __future__ import annotations

import importlib
import threading
from contextlib import AbstractContextManager
from typing import Any, Self

from tensorplug.plugin import queues_differ, threads_elsewhere

from .._cupy import cp
from . import scalars


def _index(device: Any) -> int:
    """Return the index that a device, "cuda:1", an int or None means."""
    if device is None:
        return cp.cuda.runtime.getDevice()
    if isinstance(device, int):
        return device
    kind, _, number = str(device).partition(":")
    if kind != "cuda":
        raise ValueError(f"expected a cuda device, got {device}")
    return int(number) if number else cp.cuda.runtime.getDevice()


def _device(index: int) -> Any:
    return importlib.import_module("tensorplug").device(f"cuda:{index}")


class Event:
    """A mark in a stream; it belongs to the device of the first stream in which it is put.

    Parameters
    ----------
    enable_timing : bool
        Whether :meth:`elapsed_time` works.
    blocking : bool
        Whether :meth:`synchronize` sleeps rather than spins.
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False, **_: Any) -> None:
        self._timed = enable_timing
        self._blocking = blocking
        self._index = -1
        self.raw: Any = None  # CuPy's, once it is put into a stream

    @property
    def device(self) -> Any:
        """The device of its stream; None before it is put into one."""
        return None if self.raw is None else _device(self._index)

    @property
    def cuda_event(self) -> int:
        """The address of the event, for other libraries; 0 before it is put into a stream."""
        return 0 if self.raw is None else int(self.raw.ptr)

    def record(self, stream: Stream | None = None) -> None:
        """Put the mark behind what is queued on a stream, by default the current one.

        Raises
        ------
        RuntimeError
            If it was put into a stream of another device before.
        """
        stream = stream or current_stream()
        index = stream.device_index
        with cp.cuda.Device(index):
            if self.raw is None:
                self.raw = cp.cuda.Event(block=self._blocking, disable_timing=not self._timed)
                self._index = index
            elif index != self._index:
                raise RuntimeError(
                    f"Event.record(): event device {self._index} does not match recording stream's "
                    f"device {index}; make another event for it"
                )
            self.raw.record(stream.raw)

    def wait(self, stream: Stream | None = None) -> None:
        """Make what is queued on a stream from now on wait for the mark."""
        stream = stream or current_stream()
        if self.raw is not None:
            with cp.cuda.Device(stream.device_index):
                stream.raw.wait_event(self.raw)

    def query(self) -> bool:
        """Return whether all before the mark is done."""
        return self.raw is None or bool(self.raw.done)

    def synchronize(self) -> None:
        """Wait until all before the mark is done."""
        if self.raw is not None:
            self.raw.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds between this mark and another.

        Raises
        ------
        RuntimeError
            If one of them was made without ``enable_timing=True``, or is in no stream.
        """
        if not (self._timed and end_event._timed):
            raise RuntimeError(
                "elapsed_time(): both events must be created with argument 'enable_timing=True'"
            )
        if self.raw is None or end_event.raw is None:
            raise RuntimeError("elapsed_time(): both events must be recorded before")
        return float(cp.cuda.get_elapsed_time(self.raw, end_event.raw))


class Stream:
    """A queue of work on a device.

    Memory that is freed serves the stream again on which it was allocated; of a tensor that another stream
    uses, ``tensor.record_stream(stream)`` tells.

    Parameters
    ----------
    device : device, str or int, optional
        By default the current one.
    priority : int
        Lower numbers go first.
    """

    def __init__(self, device: Any = None, priority: int = 0, *, raw: Any = None) -> None:
        # CuPy's default stream is one object for all devices, which means that of the current one.
        self._index = int(_index(device))
        if raw is None:
            with cp.cuda.Device(self._index):
                raw = cp.cuda.Stream(non_blocking=True, priority=priority)
        self.raw = raw
        self._outer: list[Any] = []

    @property
    def cuda_stream(self) -> int:
        """The address of the stream, for other libraries."""
        return int(self.raw.ptr)

    @property
    def device_index(self) -> int:
        """The number of its device."""
        return self._index

    @property
    def device(self) -> Any:
        """Its device."""
        return _device(self._index)

    def synchronize(self) -> None:
        """Wait until everything queued is done."""
        with cp.cuda.Device(self._index):
            self.raw.synchronize()

    def query(self) -> bool:
        """Return whether everything queued is done."""
        with cp.cuda.Device(self._index):
            return bool(self.raw.done)

    def record_event(self, event: Event | None = None) -> Event:
        """Put a mark behind what is queued; return it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Make what is queued from now on wait for a mark."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Make what is queued from now on wait for what is queued on another stream now."""
        self.wait_event(stream.record_event())

    def __cuda_stream__(self) -> tuple[int, int]:
        """Return version and address, as the protocol for exchanging streams has them."""
        return 0, self.cuda_stream

    def __enter__(self) -> Self:
        # CuPy's own contexts know nothing of streams that `set_stream` chose, and would not return to them.
        outer = int(cp.cuda.runtime.getDevice())
        self._outer.append((outer, cp.cuda.get_current_stream(self._index)))
        set_stream(self)
        return self

    def __exit__(self, *exc: object) -> None:
        outer, before = self._outer.pop()
        cp.cuda.runtime.setDevice(self._index)
        _use(before, self._index)
        cp.cuda.runtime.setDevice(outer)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Stream)
            and self.raw.ptr == other.raw.ptr
            and self._index == other._index
        )

    def __hash__(self) -> int:
        return hash((self._index, self.raw.ptr))

    def __repr__(self) -> str:
        return f"<tensorplug.cuda.Stream device=cuda:{self.device_index} cuda_stream={self.raw.ptr:#x}>"


def current_stream(device: Any = None) -> Stream:
    """Return the stream on which this thread queues work of a device."""
    index = _index(device)
    return Stream(index, raw=cp.cuda.get_current_stream(index))


def default_stream(device: Any = None) -> Stream:
    """Return the stream on which work is queued unless another is chosen."""
    return Stream(device, raw=cp.cuda.Stream.null)


def set_stream(stream: Stream) -> None:
    """Make a stream the current one of this thread, and its device the current one."""
    cp.cuda.runtime.setDevice(stream.device_index)
    _use(stream.raw, stream.device_index)


class _Own(threading.local):
    """The devices on which a thread uses another stream than the default one."""

    def __init__(self) -> None:
        self.elsewhere: set[int] = set()


_own = _Own()


def _use(raw: Any, index: int) -> None:
    """Make one of CuPy's streams this thread's on a device, which is the current one."""
    scalars.stream_chosen(raw, index)
    raw.use()
    before = bool(_own.elsewhere)
    (_own.elsewhere.add if raw.ptr else _own.elsewhere.discard)(index)
    if before != bool(_own.elsewhere):
        queues_differ(-1 if before else 1)


class stream(AbstractContextManager[Any]):  # noqa: N801  torch's name
    """A context in which work is queued on a stream, whose device is current; None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self._stream = stream

    def __enter__(self) -> None:
        if self._stream is not None:
            self._stream.__enter__()

    def __exit__(self, *exc: object) -> None:
        if self._stream is not None:
            self._stream.__exit__(*exc)


def alone() -> bool:
    """Return whether no other thread uses a stream than the default ones."""
    return threads_elsewhere() <= bool(_own.elsewhere)


class _Foreign:
    """A stream of another library, as CuPy takes it."""

    def __init__(self, address: int) -> None:
        self.address = address

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.address


class ExternalStream(Stream):
    """A stream that another library made, and keeps.

    Parameters
    ----------
    stream_ptr : int
        Its address.
    device : device, str or int, optional
        Whose it is; by default the current one's.
    """

    def __init__(self, stream_ptr: int, device: Any = None) -> None:
        index = _index(device)
        with cp.cuda.Device(index):
            raw = cp.cuda.Stream.from_external(_Foreign(int(stream_ptr)))
        super().__init__(index, raw=raw)


def get_stream_from_external(data_ptr: int, device: Any = None) -> Stream:
    """Return the stream at an address."""
    return ExternalStream(data_ptr, device)
