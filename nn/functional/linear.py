"""Linear maps."""

from __future__ import annotations

from ..ops.linear import bilinear, linear

__all__ = ["bilinear", "linear"]
