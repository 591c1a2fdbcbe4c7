"""Memory that streams still use, on the device or the host: it is given back when they have come past it.

A freed block serves the stream again on which it was allocated, at once. So an array that was handed to
another stream has to tell: when the last of it goes, a mark is put behind what that stream has queued, and
the block is held until the mark is reached.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from typing import Any

from .._cupy import cp
from . import captures


class Uses:
    """What streams use of memory that is not theirs."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # an array may go while another's entry is made
        self._streams: dict[int, list[Any]] = {}  # by the id of the array that owns the memory
        self._held: list[tuple[Any, list[Any]]] = []  # memory, and the marks it waits for
        self._copied: deque[tuple[Any, Any]] = deque()  # a mark, and memory of the host

    def record(self, array: Any, stream: Any) -> None:
        """Note that a stream, one of ours, uses an array."""
        owner = array if array.base is None else array.base
        with self._lock:
            streams = self._streams.get(id(owner))
            if streams is None:
                streams = self._streams[id(owner)] = []
                weakref.finalize(owner, self._gone, id(owner), owner.data).atexit = False
            if stream not in streams:
                streams.append(stream)

    def _gone(self, number: int, pointer: Any) -> None:
        """Hold the memory of an array that is gone until the streams have come past this point."""
        with self._lock:
            streams = self._streams.pop(number, [])
            if captures.underway() and any([stream.raw.is_capturing() for stream in streams]):
                captures.hold(pointer)
                return
            marks = [stream.record_event() for stream in streams]
            self._held.append((pointer, marks))

    def hold(self, memory: Any, stream: Any) -> None:
        """Keep memory of the host until a stream has come past what is queued on it now.

        What is captured may be queued again: then the graph keeps it.
        """
        if captures.underway() and stream.is_capturing():
            captures.hold(memory)
            return
        mark = cp.cuda.Event(disable_timing=True)
        mark.record(stream)
        with self._lock:
            self._copied.append((mark, memory))

    def waiting(self) -> bool:
        """Return whether memory is held."""
        return bool(self._copied or self._held)

    def release(self) -> None:
        """Let go of what no stream uses any more."""
        if captures.underway():  # it would spoil them to ask the marks
            return
        if self._copied:
            with self._lock:  # in their order, as there may be many
                while self._copied and self._copied[0][0].done:
                    self._copied.popleft()
        if self._held:
            with self._lock:
                held, self._held = self._held, []  # arrays may go meanwhile, which adds to it
                self._held += [
                    (pointer, waiting)
                    for pointer, marks in held
                    if (waiting := [mark for mark in marks if not mark.query()])
                ]

    def wait(self) -> bool:
        """Wait for streams that use memory which is gone, let go of it; return whether there was any."""
        if not self._held or captures.underway():
            return False
        with self._lock:
            for _, marks in self._held:
                for mark in marks:
                    mark.synchronize()
        self.release()
        return True
