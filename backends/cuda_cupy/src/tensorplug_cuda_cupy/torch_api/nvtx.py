"""Marks and ranges for NVIDIA's profilers: ``tp.cuda.nvtx``."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from ..runtime.availability import install_line

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]

_open = threading.local()


def _nvtx() -> Any:
    try:
        return importlib.import_module("cupy.cuda.nvtx")
    except ImportError as error:
        raise RuntimeError(
            f"NVTX functions not installed: they come with CuPy; {install_line()}"
        ) from error


def mark(msg: str) -> None:
    """Mark this moment.

    Parameters
    ----------
    msg : str
        What the profiler shows.
    """
    _nvtx().Mark(msg)


def range_push(msg: str) -> int:
    """Begin a range within those that this thread has begun; return how many it lies in."""
    _nvtx().RangePush(msg)
    depth: int = getattr(_open, "ranges", 0)
    _open.ranges = depth + 1
    return depth


def range_pop() -> int:
    """End the range that this thread began last; return how many it lay in, -1 if there was none."""
    _nvtx().RangePop()
    depth: int = getattr(_open, "ranges", 0) - 1
    _open.ranges = max(depth, 0)
    return depth


def range_start(msg: str) -> int:
    """Begin a range that any thread may end; return its number."""
    return int(_nvtx().RangeStart(msg, 0))


def range_end(range_id: int) -> None:
    """End the range of a number."""
    _nvtx().RangeEnd(range_id)


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Generator[None]:
    """Return a context, or a decorator, that is a range; `msg` is formatted with the other arguments."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
