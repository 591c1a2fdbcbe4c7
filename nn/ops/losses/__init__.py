"""Losses."""

from __future__ import annotations

from . import classification, ctc, margin, regression

DERIVATIVES = [
    *classification.DERIVATIVES,
    *ctc.DERIVATIVES,
    *margin.DERIVATIVES,
    *regression.DERIVATIVES,
]
