"""Normalization over batches, channels and rows."""

from __future__ import annotations

from . import mixed_norms, normalization, scaling

DERIVATIVES = [*normalization.DERIVATIVES, *scaling.DERIVATIVES, *mixed_norms.DERIVATIVES]
