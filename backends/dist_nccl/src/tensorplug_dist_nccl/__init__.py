"""Process groups of GPUs for tensorplug by NCCL, through CuPy."""

from __future__ import annotations

from ._plugin import plugin

__all__ = ["plugin"]
