"""Memory of the device: CuPy's pool, with peaks, limits, and errors that tell the figures."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from tensorplug.plugin import OutOfMemoryError

from .._cupy import cp
from . import memory_history
from .stream_uses import Uses

_NAMES_OF_TORCH = {
    "allocated_bytes": "allocated",
    "active_bytes": "allocated",
    "reserved_bytes": "reserved",
}


class DeviceMemory:
    """Allocates from CuPy's default pool and keeps the peaks that CuPy does not.

    The pool keeps blocks apart by the stream on which they were allocated, so memory that is freed is used
    again on its own stream only; :mod:`.stream_uses` knows of the uses of other streams.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._peaks: dict[int, list[int]] = {}  # by device: allocated, reserved
        self._fractions: dict[int, float] = {}  # by device: what set_fraction was told
        self._failures = {"num_alloc_retries": 0, "num_ooms": 0}
        self.uses = Uses()

    def install(self) -> None:
        """Allocate all of CuPy's arrays here, unless another allocator was chosen (RAPIDS' for one)."""
        pool = cp.get_default_memory_pool()
        if cp.cuda.get_allocator() == pool.malloc:
            cp.cuda.set_allocator(self._allocate)

    def _allocate(self, size: int) -> Any:
        if self.uses.waiting():
            self.uses.release()
        pool = cp.get_default_memory_pool()
        try:
            memory = pool.malloc(size)
        except cp.cuda.memory.OutOfMemoryError:
            memory = self._after_others(size)
        index = memory.device_id
        allocated, reserved = pool.used_bytes(), pool.total_bytes()
        if memory_history.active:
            memory_history.note(memory, size)
        peaks = self._peaks.get(index)
        if peaks is None or allocated > peaks[0] or reserved > peaks[1]:
            with self._lock:
                before = self._peaks.get(index, [0, 0])
                self._peaks[index] = [max(before[0], allocated), max(before[1], reserved)]
        return memory

    def _after_others(self, size: int) -> Any:
        """Allocate once streams have come past memory that is held for them."""
        self._failures["num_alloc_retries"] += 1
        if self.uses.wait():
            try:
                return cp.get_default_memory_pool().malloc(size)
            except cp.cuda.memory.OutOfMemoryError:
                pass
        self._failures["num_ooms"] += 1
        raise out_of_memory(size, self.stats())

    def stats(self) -> Mapping[str, int]:
        """Return the figures of the current device in bytes, torch's names for them among them."""
        pool = cp.get_default_memory_pool()
        allocated, reserved = pool.used_bytes(), pool.total_bytes()
        peaks = self._peaks.get(cp.cuda.runtime.getDevice(), [0, 0])
        figures = {
            "allocated": allocated,
            "reserved": reserved,
            "peak_allocated": max(peaks[0], allocated),
            "peak_reserved": max(peaks[1], reserved),
            "limit": pool.get_limit(),
        }
        for name, figure in _NAMES_OF_TORCH.items():
            figures[f"{name}.all.current"] = figures[figure]
            figures[f"{name}.all.peak"] = figures[f"peak_{figure}"]
        return {**figures, **self._failures}

    def reset_peaks(self) -> None:
        """Make the peaks of the current device start again from the present."""
        with self._lock:
            self._peaks.pop(cp.cuda.runtime.getDevice(), None)

    def empty_cache(self) -> None:
        """Give back what no array uses, of device memory and page-locked memory."""
        self.uses.release()
        cp.get_default_memory_pool().free_all_blocks()
        cp.get_default_pinned_memory_pool().free_all_blocks()

    def fraction(self) -> float:
        """Return which part of the current device's memory the pool is limited to."""
        return self._fractions.get(cp.cuda.runtime.getDevice(), 1.0)

    def set_fraction(self, fraction: float) -> None:
        """Limit the pool of the current device to a part of its memory.

        Raises
        ------
        TypeError, ValueError
            If it is no number, or not between 0 and 1.
        """
        if isinstance(fraction, bool) or not isinstance(fraction, (int, float)):
            raise TypeError(
                f"set_per_process_memory_fraction(): expects a float, got {type(fraction).__name__}"
            )
        if not 0 <= fraction <= 1:
            raise ValueError(
                "set_per_process_memory_fraction(): expects a fraction between 0 and 1, got "
                f"{fraction}"
            )
        _, total = cp.cuda.runtime.memGetInfo()
        self._fractions[cp.cuda.runtime.getDevice()] = float(fraction)
        # To the pool, 0 would mean that there is no limit.
        cp.get_default_memory_pool().set_limit(size=max(1, int(fraction * total)))


def out_of_memory(size: int, stats: Mapping[str, int]) -> OutOfMemoryError:
    """Return the error of an allocation for which there is no room, with the figures of its pool."""
    free, total = cp.cuda.runtime.memGetInfo()
    limit = stats["limit"]
    return OutOfMemoryError(
        f"CUDA out of memory: tried to allocate {_short(size)}. The device has {_short(total)}, of which "
        f"{_short(free)} are free; tensors of this process take {_short(stats['allocated'])}, and "
        f"{_short(stats['reserved'] - stats['allocated'])} more are kept for reuse"
        + (f"; the limit set is {_short(limit)}" if limit else "")
        + ". Smaller batches need less; tp.cuda.empty_cache() gives back what is kept for reuse, which "
        "other processes then can have."
    )


def allocator_of(pool: Any) -> Callable[[int], Any]:
    """Return what allocates from a pool apart from the common one, with the same error."""

    def allocate(size: int) -> Any:
        try:
            return pool.malloc(size)
        except cp.cuda.memory.OutOfMemoryError:
            names = {"allocated": "used_bytes", "reserved": "total_bytes", "limit": "get_limit"}
            figures = {name: getattr(pool, method)() for name, method in names.items()}
            raise out_of_memory(size, figures) from None

    return allocate


def summary(stats: Mapping[str, int], device: str) -> str:
    """Return the figures as a table for people."""
    lines = [f"memory of {device}"]
    lines += [
        f"  {name.replace('_', ' '):<16} {_short(value):>12}"
        for name, value in stats.items()
        if "." not in name and not name.startswith("num_")
    ]
    return "\n".join(lines)


def _short(size: int) -> str:
    value = float(size)
    for unit in ("bytes", "KiB", "MiB"):
        if value < 1024:
            return f"{size} bytes" if unit == "bytes" else f"{value:.2f} {unit}"
        value /= 1024
    return f"{value:.2f} GiB"
