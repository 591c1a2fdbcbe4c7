"""Streams and events, as ``tp.cuda`` shows them."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from typing import Any, Self

from ._cupy import cp


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


class Event:
    """A mark in a stream.

    Parameters
    ----------
    enable_timing : bool
        Whether :meth:`elapsed_time` works.
    blocking : bool
        Whether :meth:`synchronize` sleeps rather than spins.
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False, **_: Any) -> None:
        self.raw = cp.cuda.Event(block=blocking, disable_timing=not enable_timing)
        self._timed = enable_timing

    def record(self, stream: Stream | None = None) -> None:
        """Put the mark behind what is queued on a stream, by default the current one."""
        self.raw.record((stream or current_stream()).raw)

    def wait(self, stream: Stream | None = None) -> None:
        """Make what is queued on a stream from now on wait for the mark."""
        (stream or current_stream()).raw.wait_event(self.raw)

    def query(self) -> bool:
        """Return whether all before the mark is done."""
        return bool(self.raw.done)

    def synchronize(self) -> None:
        """Wait until all before the mark is done."""
        self.raw.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds between this mark and another.

        Raises
        ------
        RuntimeError
            If one of them was made without ``enable_timing=True``.
        """
        if not (self._timed and end_event._timed):
            raise RuntimeError(
                "elapsed_time(): both events must be created with argument 'enable_timing=True'"
            )
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
        if raw is None:
            with cp.cuda.Device(_index(device)):
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
        index = int(self.raw.device_id)  # -1 of the default stream, which every device has
        return index if index >= 0 else int(cp.cuda.runtime.getDevice())

    def synchronize(self) -> None:
        """Wait until everything queued is done."""
        self.raw.synchronize()

    def query(self) -> bool:
        """Return whether everything queued is done."""
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
        context = ExitStack()
        if self.raw.device_id >= 0:  # the default stream belongs to whichever device is current
            context.enter_context(cp.cuda.Device(self.raw.device_id))
        context.enter_context(self.raw)
        self._outer.append(context)
        return self

    def __exit__(self, *exc: object) -> None:
        self._outer.pop().close()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.raw.ptr == other.raw.ptr

    def __hash__(self) -> int:
        return hash(self.raw.ptr)

    def __repr__(self) -> str:
        return f"<tensorplug.cuda.Stream device=cuda:{self.device_index} cuda_stream={self.raw.ptr:#x}>"


def current_stream(device: Any = None) -> Stream:
    """Return the stream on which this thread queues work of a device."""
    return Stream(raw=cp.cuda.get_current_stream(_index(device)))


def default_stream(device: Any = None) -> Stream:
    """Return the stream on which work is queued unless another is chosen."""
    with cp.cuda.Device(_index(device)):
        return Stream(raw=cp.cuda.Stream.null)


def set_stream(stream: Stream) -> None:
    """Make a stream the current one of this thread."""
    stream.raw.use()


class stream(AbstractContextManager[Any]):  # noqa: N801  torch's name
    """A context in which work is queued on a stream; None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self._stream = stream

    def __enter__(self) -> None:
        if self._stream is not None:
            self._stream.__enter__()

    def __exit__(self, *exc: object) -> None:
        if self._stream is not None:
            self._stream.__exit__(*exc)


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
        with cp.cuda.Device(_index(device)):
            super().__init__(raw=cp.cuda.Stream.from_external(_Foreign(int(stream_ptr))))


def get_stream_from_external(data_ptr: int, device: Any = None) -> Stream:
    """Return the stream at an address."""
    return ExternalStream(data_ptr, device)
