"""What the allocator has handed out: ``tp.cuda.memory_snapshot`` and the history behind it.

CuPy's pool does not tell which blocks it keeps, nor of which larger ones they are parts. So each block that
is in use is a segment of its own here, and one segment at address 0 stands for what is kept for reuse. The
form is torch's, which https://pytorch.org/memory_viz shows.
"""

from __future__ import annotations

import gc
import pickle
import sys
import threading
import time
from collections import deque
from os import PathLike
from typing import Any

from .._cupy import cp

_LARGE = 1 << 20
_MOST_FRAMES = 64

_lock = threading.RLock()  # memory may go while it is held
_blocks: dict[int, dict[str, Any]] = {}  # by address, those handed out while a history is kept
_events: deque[tuple[int, dict[str, Any]]] = deque()  # with their devices
_kept = {"blocks": False, "events": False, "frames": False, "frames_of_frees": False}

#: Whether a history is kept: the allocator then tells of each block.
active = False


class _End:
    """Goes with a block, whose end it notes."""

    def __init__(self, device: int, address: int, size: int, stream: int) -> None:
        self._block = device, address, size, stream

    def __del__(self) -> None:
        if active:
            device, address, size, stream = self._block
            with _lock:
                _blocks.pop(address, None)
                frames = _frames(1) if _kept["frames_of_frees"] else []
                for action in ("free_requested", "free_completed"):
                    _note(device, action, address, size, stream, frames)


def note(memory: Any, requested: int) -> None:
    """Note a block of the pool that was handed out."""
    block, stream = memory.mem, int(cp.cuda.get_current_stream().ptr)
    with _lock:
        frames = _frames(3) if _kept["frames"] else []
        if _kept["blocks"]:
            _blocks[block.ptr] = {"requested_size": requested, "stream": stream, "frames": frames}
            block.ending = _End(block.device_id, block.ptr, block.size, stream)
        _note(block.device_id, "alloc", block.ptr, block.size, stream, frames)


def _note(
    device: int, action: str, address: int, size: int, stream: int, frames: list[dict[str, Any]]
) -> None:
    if _kept["events"]:
        event = {
            "action": action, "addr": address, "size": size, "stream": stream, "frames": frames,
            "time_us": time.time_ns() // 1000,
        }  # fmt: skip
        _events.append((device, event))


def _frames(skip: int) -> list[dict[str, Any]]:
    """Return the stack of the caller, innermost first."""
    found: list[dict[str, Any]] = []
    frame: Any = sys._getframe(skip)
    while frame is not None and len(found) < _MOST_FRAMES:
        code = frame.f_code
        found.append({"filename": code.co_filename, "line": frame.f_lineno, "name": code.co_name})
        frame = frame.f_back
    return found


def record_memory_history(
    enabled: str | None = "all",
    context: str | None = "all",
    stacks: str = "all",
    max_entries: int = sys.maxsize,
    device: Any = None,  # noqa: ARG001  torch's argument, as it ignores it as well
    clear_history: bool = False,
    **_: Any,
) -> None:
    """Keep a history of blocks that are handed out and come back, for :func:`snapshot`, or end it.

    Parameters
    ----------
    enabled : {"all", "state", None}
        Keep the history; keep where the present blocks came from only; end it.
    context : {"all", "alloc", "state", None}
        Of what to keep Python's stack: also of blocks that come back; of those that are handed out; of none.
    stacks : {"all", "python"}
        There are Python's stacks only.
    max_entries : int
        How many events are kept, the latest.
    clear_history : bool
        Whether to forget what was kept before.

    Raises
    ------
    RuntimeError
        If one of them is something else.
    """
    global active, _events
    for name, value, choices in (
        ("enabled", enabled, (None, "state", "all")),
        ("context", context, (None, "state", "alloc", "all")),
        ("stacks", stacks, ("python", "all")),
    ):
        if value not in choices:
            raise RuntimeError(f"{name} should be one of {choices}, got {value!r}")
    with _lock:
        _kept.update(
            blocks=enabled is not None,
            events=enabled == "all",
            frames=context is not None,
            frames_of_frees=context == "all",
        )
        events = deque() if clear_history or enabled is None else _events
        _events = deque(events, min(max_entries, sys.maxsize))
        if enabled is None:
            _blocks.clear()
        active = enabled is not None


def memory_snapshot(mempool_id: Any = None, include_traces: bool = True) -> list[dict[str, Any]]:
    """Return the segments of the allocator's memory: a block in use each, and one of what is kept for reuse.

    Parameters
    ----------
    mempool_id, include_traces : optional
        torch's; there is the common pool only, and no traces are among these.
    """
    del mempool_id, include_traces
    with _lock:
        found = [_segment(block) for block in _in_use()]
    pool, kept = cp.get_default_memory_pool(), []
    for index in range(cp.cuda.runtime.getDeviceCount()):
        with cp.cuda.Device(index):
            size = int(pool.free_bytes())
        if size:
            block = {
                "address": 0,
                "size": size,
                "requested_size": 0,
                "state": "inactive",
                "frames": [],
            }
            kept.append(_described(index, 0, [block]))
    return [*found, *kept]


def _in_use() -> list[Any]:
    """Return the pool's blocks that anything holds; memory of others may be at the same addresses."""
    pooled = cp.cuda.memory.PooledMemory
    pointers = [thing for thing in gc.get_objects() if isinstance(thing, cp.cuda.MemoryPointer)]
    blocks = {at.mem.ptr: at.mem for at in pointers if isinstance(at.mem, pooled) and at.mem.ptr}
    return [block for _, block in sorted(blocks.items())]


def _segment(block: Any) -> dict[str, Any]:
    known = _blocks.get(block.ptr, {})
    part = {
        "address": block.ptr,
        "size": block.size,
        "requested_size": known.get("requested_size", block.size),
        "state": "active_allocated",
        "frames": known.get("frames", []),
    }
    return _described(block.device_id, known.get("stream", 0), [part])


def _described(device: int, stream: int, blocks: list[dict[str, Any]]) -> dict[str, Any]:
    size = sum([block["size"] for block in blocks])
    used = sum([block["size"] for block in blocks if block["state"] == "active_allocated"])
    return {
        "device": device,
        "address": blocks[0]["address"],
        "total_size": size,
        "allocated_size": used,
        "active_size": used,
        "requested_size": sum([block["requested_size"] for block in blocks]),
        "stream": stream,
        "segment_type": "large" if size > _LARGE else "small",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": blocks[0]["frames"],
        "blocks": blocks,
    }


def snapshot(device: Any = None, augment_with_fx_traces: bool = False) -> dict[str, Any]:
    """Return segments and, of each device, the events of the history.

    Parameters
    ----------
    device, augment_with_fx_traces : optional
        torch's; all devices are shown, and nothing is generated by fx.
    """
    del device, augment_with_fx_traces
    traces: list[list[dict[str, Any]]] = [[] for _ in range(cp.cuda.runtime.getDeviceCount())]
    with _lock:
        for index, event in _events:
            traces[index].append(event)
    return {"segments": memory_snapshot(), "device_traces": traces, "allocator_settings": {}}


def dump_snapshot(
    filename: str | PathLike[str] = "dump_snapshot.pickle", augment_with_fx_traces: bool = False
) -> None:
    """Write :func:`snapshot` into a file, as torch does.

    Parameters
    ----------
    filename : path
        The file.
    augment_with_fx_traces : bool
        As for :func:`snapshot`.
    """
    found = snapshot(None, augment_with_fx_traces)
    with open(filename, "wb") as file:  # noqa: PTH123  torch's argument may be any path
        pickle.dump(found, file)
