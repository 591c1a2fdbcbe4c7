"""Numbers on the device, which core keeps and hands to kernels on whichever stream they run.

While all work goes to the devices' default streams, a number is written there, and whatever reads it comes
later. Once another stream has been used, that says nothing; then it is written on a stream of its own, which
has nothing else to do. This thread's stream and the default one wait for that, as does each stream that
becomes the current one; the host waits only where other threads use streams of theirs, or work is captured.
Captured graphs read the numbers again at each replay, so they hold those that were there.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from .._cupy import cp
from . import captures

_HELD = 256  # numbers that are gone, for which to wait for the device

_lock = threading.RLock()  # arrays may go while it is held
_apart = False  # whether another stream than the default ones has been used
_written: set[int] = set()  # devices on whose default stream there are numbers
_streams: dict[int, Any] = {}  # by device
_marks: dict[int, Any] = {}  # by device, behind the last number on that stream
_living: dict[int, Any] = {}  # weak references
_gone: list[Any] = []  # memory of numbers that streams may still read


def stream_chosen(stream: Any, index: int) -> None:
    """Make one of CuPy's streams, about to become the current one of the current device, wait for numbers."""
    global _apart
    if not stream.ptr and not _apart:
        return
    if not _apart:
        with _lock:
            if _written:
                with captures.relaxed():
                    for written in _written:
                        with cp.cuda.Device(written):
                            cp.cuda.Stream.null.synchronize()
            _apart = True
    mark = _marks.get(index)
    # Of what is read within captures, the host has waited for it.
    if mark is not None and not (captures.underway() and stream.is_capturing()):
        stream.wait_event(mark)


def number(fill: Callable[[], Any], index: int, alone: bool) -> Any:
    """Return the array that a function makes on a device, for every stream to read.

    Parameters
    ----------
    fill : callable
        Makes it on the current device and stream.
    index : int
        The device.
    alone : bool
        Whether other threads use the default streams only.
    """
    with cp.cuda.Device(index):
        current = cp.cuda.get_current_stream()
        if not _apart and not current.ptr:
            _written.add(index)
            return _known(fill())
        stream_chosen(current, index)
        waits = captures.underway() or not alone
        with captures.relaxed(), _private(index) as stream:
            _release()
            array = _known(fill())
            mark = _marks[index] = stream.record(cp.cuda.Event(disable_timing=True))
            if waits:
                stream.synchronize()
        if not waits:
            for other in (current, cp.cuda.Stream.null):
                other.wait_event(mark)
        return array


@contextmanager
def _private(index: int) -> Generator[Any]:
    """Return a context in which the device's own stream and the common memory are used."""
    with _lock:
        stream = _streams.get(index)
        if stream is None:
            stream = _streams[index] = cp.cuda.Stream(non_blocking=True)
    before = cp.cuda.get_current_stream()
    stream.use()
    try:
        with cp.cuda.using_allocator(cp.get_default_memory_pool().malloc):
            yield stream
    finally:
        before.use()


def _known(array: Any) -> Any:
    weakref.finalize(array, _went, id(array), array.data).atexit = False
    _living[id(array)] = weakref.ref(array)
    if captures.underway():
        captures.hold(array)
    return array


def _went(key: int, pointer: Any) -> None:
    _living.pop(key, None)
    if _apart:
        _gone.append(pointer)


def _release() -> None:
    """Free the memory of numbers that are gone, when there are many, after what was queued."""
    if len(_gone) > _HELD and not captures.underway():
        with _lock:
            cp.cuda.runtime.deviceSynchronize()
            _gone.clear()


def living() -> list[Any]:
    """Return the numbers that are there."""
    return [array for known in list(_living.values()) if (array := known()) is not None]
