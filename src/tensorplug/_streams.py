"""``tp.Stream`` and ``tp.Event``: those of a device, and of the host, which computes at once."""

from __future__ import annotations

import time
from typing import Any, Self

from tensorplug.core.device.device import Device

HOST = "cpu"


def _own(device: Any, name: str) -> tuple[Device, Any]:
    """Return a device, and the class of that name that its plugin brings; None on the host."""
    from . import _devices, accelerator  # they import this module's users

    if device is None:
        chosen = accelerator.current_accelerator() or Device(HOST)
    elif isinstance(device, int):
        accelerated = accelerator.current_accelerator()
        chosen = Device(HOST if accelerated is None else accelerated.type, device)
    else:
        chosen = Device(device)
    if chosen.type == HOST:
        return chosen, None
    return chosen, getattr(_devices.DeviceModule.of(chosen.type), name)


class Stream:
    """A queue of work of a device: ``tp.Stream("cuda")`` is a ``tp.cuda.Stream``.

    The host has one, on which everything is done when it is asked for, so that nothing is waited for.

    Parameters
    ----------
    device : Device, str or int, optional
        By default the device type beside the CPU, if there is one.
    priority : int
        As the device has them.

    Raises
    ------
    NotImplementedError
        If the device's plugin has no streams.

    Examples
    --------
    >>> import tensorplug as tp
    >>> stream = tp.Stream("cpu")
    >>> with stream:
    ...     x = tp.ones(2) + 1
    >>> stream.query()
    True
    """

    def __new__(cls, device: Any = None, *, priority: int = 0) -> Any:
        """Make a stream of the device's own class."""
        chosen, own = _own(device, "Stream")
        if own is not None:
            return own(device=chosen, priority=priority)
        stream = super().__new__(cls)
        stream.device = chosen
        return stream

    device: Device
    #: Which of the device's streams it is.
    stream_id = 0

    @property
    def device_index(self) -> int:
        """The index of the device; -1 of the host."""
        return -1 if self.device.index is None else self.device.index

    def query(self) -> bool:
        """Return whether all work is done."""
        return True

    def synchronize(self) -> None:
        """Wait until all work is done."""

    def wait_event(self, event: Any) -> None:
        """Begin no more work until an event has come."""
        event.synchronize()

    def wait_stream(self, stream: Any) -> None:
        """Begin no more work until that of another stream is done."""
        if hasattr(stream, "synchronize"):
            stream.synchronize()

    def record_event(self, event: Any = None) -> Any:
        """Note in an event, by default a new one, when the work until now is done; return it."""
        event = Event(self.device) if event is None else event
        event.record(self)
        return event

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.device == self.device

    def __hash__(self) -> int:
        return hash((Stream, self.device))

    def __repr__(self) -> str:
        return f"Stream(device={self.device!s}, stream_id={self.stream_id})"


class HostStream(Stream):
    """The host's stream: ``tp.cpu.Stream()``."""

    def __new__(cls, priority: int = -1) -> Any:  # noqa: ARG004
        """Make a stream of the host."""
        return super().__new__(cls, HOST)


class Event:
    """A point in a device's work: ``tp.Event("cuda")`` is a ``tp.cuda.Event``; the host's notes the time.

    Parameters
    ----------
    device : Device, str or int, optional
        By default the device type beside the CPU, if there is one.
    enable_timing : bool
        Whether :meth:`elapsed_time` is asked for.
    blocking, interprocess : bool
        As the device has them.

    Raises
    ------
    NotImplementedError
        If the device's plugin has no events.

    Examples
    --------
    >>> import tensorplug as tp
    >>> start, end = tp.Event("cpu", enable_timing=True), tp.Event("cpu", enable_timing=True)
    >>> start.record()
    >>> end.record()
    >>> start.elapsed_time(end) >= 0
    True
    """

    def __new__(
        cls,
        device: Any = None,
        *,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> Any:
        """Make an event of the device's own class."""
        chosen, own = _own(device, "Event")
        if own is not None:
            return own(enable_timing=enable_timing, blocking=blocking, interprocess=interprocess)
        event = super().__new__(cls)
        event.device = chosen
        event._timed = enable_timing
        event._time = None
        return event

    device: Device
    _timed: bool
    _time: float | None

    def record(self, stream: Any = None) -> None:
        """Note that the work until now is done."""
        self._time = time.perf_counter()

    def query(self) -> bool:
        """Return whether the work is done."""
        return True

    def synchronize(self) -> None:
        """Wait until the work is done."""

    def wait(self, stream: Any = None) -> None:
        """Have a stream wait until the work is done."""

    def elapsed_time(self, end_event: Any) -> float:
        """Return the milliseconds from this event to another.

        Raises
        ------
        ValueError
            If one of them takes no time, or was not recorded.
        """
        if not (self._timed and end_event._timed):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._time is None or end_event._time is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return float(end_event._time - self._time) * 1000

    def __repr__(self) -> str:
        return f"Event(device={self.device!s})"
