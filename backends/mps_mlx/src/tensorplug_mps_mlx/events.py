"""Times on the device."""

from __future__ import annotations

import time
from typing import Any


class Event:
    """A point in time at which everything that was asked for until then is computed.

    MLX measures no queue: :meth:`record` evaluates what is held, waits, and reads the clock, so that times
    between two events are those of the work and not those of building its graph.

    Parameters
    ----------
    enable_timing : bool
        Taken for torch's sake: each event has its time.
    """

    def __init__(self, enable_timing: bool = False) -> None:
        self._seconds: float | None = None
        self.enable_timing = enable_timing

    def record(self) -> None:
        """Evaluate what is held, and take the time."""
        from ._plugin import plugin  # the runtime that has this class among its names

        plugin.runtime.synchronize(0)
        self._seconds = time.perf_counter()

    def wait(self) -> None:
        """Do nothing: what was recorded is there."""

    def synchronize(self) -> None:
        """Do nothing: what was recorded is there."""

    def query(self) -> bool:
        """Return True: what was recorded is there."""
        return True

    def elapsed_time(self, end_event: Any) -> float:
        """Return the milliseconds from this event to another.

        Raises
        ------
        RuntimeError
            If one of them was not recorded.
        """
        if self._seconds is None or end_event._seconds is None:
            raise RuntimeError("elapsed_time(): both events have to be recorded first")
        return (end_event._seconds - self._seconds) * 1e3
