"""Putting off what signals do, KeyboardInterrupt above all, while processes are started or ended."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType
from typing import Any


class signals_put_off:
    """Has signals that Python handles wait until the end of a ``with`` block of the main thread.

    A process that was forked, but of which nobody has taken note yet, could not be ended.
    """

    def __init__(self) -> None:
        self._handlers: dict[int, Any] = {}
        self._waiting: list[tuple[int, FrameType | None]] = []

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return  # handlers run in the main thread only
        _open.append(self)
        try:
            for number in signal.valid_signals():
                handler = signal.getsignal(number)
                if callable(handler):
                    self._handlers[number] = handler
                    signal.signal(number, self._note)
        except BaseException:
            self.restore()
            raise

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._waiting.append((number, frame))

    def restore(self) -> None:
        """Put the handlers back."""
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        _open.remove(self)

    def __exit__(self, *exc: object) -> None:
        if self not in _open:
            return
        self.restore()
        for number, frame in self._waiting:
            self._handlers[number](number, frame)


_open: list[signals_put_off] = []


def _in_child() -> None:
    for block in reversed(_open[:]):
        block.restore()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
