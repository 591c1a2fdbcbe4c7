"""Compiled kernels for device "cpu", on the same NumPy arrays as cpu_numpy's, and a caching allocator."""

from __future__ import annotations

from .waiting import briefly

with briefly():
    from ._plugin import plugin

__all__ = ["plugin"]
