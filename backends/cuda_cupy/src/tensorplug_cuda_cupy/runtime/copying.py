"""Copies between the host and the current device, in the order of the current stream, and between devices.

The GPU reads and writes memory of the host by itself where it is page-locked. So a copy that is queued holds
that memory until the stream has come past: until then the pool must not hand it out again. A copy from other
memory goes through a block of page-locked memory, and may be forgotten by the caller at once.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from .._cupy import cp
from . import captures, sync_debug
from .stream_uses import Uses


class Copies:
    """Copies, which hold what they need.

    Parameters
    ----------
    uses : Uses
        Keeps memory until marks in streams are reached.
    """

    def __init__(self, uses: Uses) -> None:
        self._uses = uses

    def pinned(self, like: Any) -> Any:
        """Return a new array in page-locked memory, of an array's shape, dtype and order of dimensions."""
        self._uses.release()
        with captures.relaxed() if captures.underway() else nullcontext():
            memory = cp.cuda.alloc_pinned_memory(max(like.nbytes, 1))
        order = sorted(range(like.ndim), key=lambda dim: (-abs(like.strides[dim]), dim))
        rows = np.ndarray([like.shape[dim] for dim in order], like.dtype, memory)
        return rows.transpose(np.argsort(order)) if order else rows

    def send(self, array: Any, straight: bool) -> Any:
        """Return an array of the device into which a host array, row by row, is copied.

        With `straight` the GPU reads it where it lies: page-locked memory that stays as it is until then.
        """
        made = cp.empty(array.shape, array.dtype)
        if array.nbytes:
            if not straight:
                staged = self.pinned(array)
                staged[...] = array
                array = staged
            stream = cp.cuda.get_current_stream()
            if straight:
                _queue(made.data.ptr, array.ctypes.data, array.nbytes, "memcpyHostToDevice", stream)
            else:
                made.data.copy_from_host_async(array.ctypes.data, array.nbytes)
            self._uses.hold(array, stream)
        return made

    def fetch(self, array: Any) -> Any:
        """Return a copy on the host; waits for what computes the array."""
        sync_debug.note()
        target = np.empty(array.shape, array.dtype)
        if array.nbytes:
            stream = cp.cuda.get_current_stream()
            cp.ascontiguousarray(array).data.copy_to_host_async(target.ctypes.data, array.nbytes)
            stream.synchronize()
        return target

    def fetch_into(self, array: Any, target: Any) -> None:
        """Queue a copy into a host array, row by row in page-locked memory."""
        if array.nbytes:
            stream, rows = cp.cuda.get_current_stream(), cp.ascontiguousarray(array)
            _queue(target.ctypes.data, rows.data.ptr, rows.nbytes, "memcpyDeviceToHost", stream)
            self._uses.hold(target, stream)


def _queue(to: int, source: int, size: int, kind: str, stream: Any) -> None:
    """Queue a copy of bytes, as CuPy's methods do, which refuse while a stream is captured."""
    runtime = cp.cuda.runtime
    runtime.memcpyAsync(to, source, size, getattr(runtime, kind), stream.ptr)


def to_device(array: Any, index: int) -> Any:
    """Return a copy on another device, row by row.

    CuPy queues such copies on the other device's stream, which knows nothing of what is queued on this one's.
    So it is made to wait for that, and this one's for the copy, before memory is written or given away.
    """
    with array.device:
        rows = cp.ascontiguousarray(array)
        own = cp.cuda.get_current_stream()
        computed = own.record(cp.cuda.Event(disable_timing=True))
    with cp.cuda.Device(index):
        other = cp.cuda.get_current_stream()
        other.wait_event(computed)
        result = rows.copy()
        copied = other.record(cp.cuda.Event(disable_timing=True))
    with array.device:
        own.wait_event(copied)
    return result


def is_pinned(array: Any) -> bool:
    """Return whether a NumPy array lies in memory of CuPy's page-locked pool."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    return isinstance(base, cp.cuda.PinnedMemoryPointer)
