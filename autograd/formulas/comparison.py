"""Comparisons have no derivatives."""

from __future__ import annotations

from ..engine.derivatives import not_differentiable

DERIVATIVES = [
    *not_differentiable("eq", "ge", "gt", "le", "lt", "ne"),
]
