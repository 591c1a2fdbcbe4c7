"""The device "mps" for tensorplug: Apple silicon by MLX."""

from __future__ import annotations

from ._plugin import plugin

__all__ = ["plugin"]
