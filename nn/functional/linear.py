"""Linear maps."""

from __future__ import annotations

from ..ops.linear import bilinear, grouped_mm, linear

__all__ = ["bilinear", "grouped_mm", "linear"]
