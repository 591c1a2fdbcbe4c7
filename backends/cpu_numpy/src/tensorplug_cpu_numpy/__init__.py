"""NumPy kernels for device "cpu": the definition of the semantics, and the embedded default."""

from __future__ import annotations

from ._plugin import plugin

__all__ = ["plugin"]
