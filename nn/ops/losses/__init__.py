"""Losses."""

from __future__ import annotations

from . import classification, ctc as ctc, margin as margin, regression as regression

DERIVATIVES = [*classification.DERIVATIVES, *regression.DERIVATIVES]
