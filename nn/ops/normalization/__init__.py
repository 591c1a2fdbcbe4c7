"""Normalization over batches, channels and rows."""

from __future__ import annotations

from . import batch_norm, layer_norm, normalize, statistics as statistics

DERIVATIVES = [*batch_norm.DERIVATIVES, *layer_norm.DERIVATIVES, *normalize.DERIVATIVES]
