"""What must not happen while a stream is captured, and how it is put off: asking events, and freeing memory.

CUDA forbids calls that may wait for the device, from any thread or from the capturing one as the capture's
mode says, and such a call spoils the capture. Memory of the device is freed by such a call, and goes whenever
Python drops the last array in it.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from typing import Any

from .._cupy import cp
from .availability import DRIVER

_lock = threading.RLock()  # memory may go while it is held
_underway = 0
_put_off: list[Any] = []  # memory that went during captures
_own = threading.local()  # whether this thread captures
_holders: list[list[Any]] = []  # what the graphs hold that are captured now


def begin(holder: list[Any]) -> None:
    """Note that a capture begins, of a graph that holds what is in a list."""
    global _underway
    with _lock:
        _underway += 1
        _holders.append(holder)
    _own.captures = True


def end(holder: list[Any]) -> None:
    """Note that its capture has ended; free what went meanwhile, if it was the last."""
    global _underway
    _own.captures = False
    with _lock:
        _underway -= 1
        _holders[:] = [other for other in _holders if other is not holder]
        gone = [] if _underway else list(_put_off)
        if gone:
            _put_off.clear()
    gone.clear()


def underway() -> bool:
    """Return whether any thread captures."""
    return _underway > 0


def hold(something: Any) -> None:
    """Let the graphs that are captured now hold something."""
    with _lock:
        for holder in _holders:
            holder.append(something)


@contextmanager
def relaxed() -> Generator[None]:
    """Return a context in which captures do not look at this thread's calls."""
    exchange = _driver().cuThreadExchangeStreamCaptureMode
    mode = ctypes.c_int(cp.cuda.runtime.streamCaptureModeRelaxed)
    exchange(ctypes.byref(mode))
    try:
        yield
    finally:
        exchange(ctypes.byref(mode))


@cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL(DRIVER)


class _Owner:
    """Holds memory, and hands it over to be freed later if a capture is underway when it goes."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory

    def __del__(self) -> None:
        if _underway:
            _put_off.append(self._memory)


def pool(allocate: Callable[[int], Any] | None = None) -> Any:
    """Return a pool of memory of the device that may be taken, and may go, while a stream is captured.

    CUDA forbids to take memory during a capture since that does not happen again at each replay. It need not:
    the pool keeps what it took during one, even when it needs room, as graphs use it at each replay.

    Parameters
    ----------
    allocate : callable, optional
        Brings new memory; by default CUDA's.
    """
    kept: list[_Owner] = []

    def allocate_within(size: int) -> Any:
        with relaxed():
            memory = cp.cuda.Memory(size) if allocate is None else allocate(size).mem
        owner = _Owner(memory)
        if getattr(_own, "captures", False):
            kept.append(owner)
        own = cp.cuda.UnownedMemory(memory.ptr, memory.size, owner, memory.device_id)
        return cp.cuda.MemoryPointer(own, 0)

    return cp.cuda.MemoryPool(allocate_within)
