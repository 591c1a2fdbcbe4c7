"""Losses."""

from __future__ import annotations

from . import classification, ctc, margin, regression
from .classification import *
from .ctc import *
from .margin import *
from .regression import *

# Type checkers follow the lines with `*`.
globals()["__all__"] = [*classification.__all__, *ctc.__all__, *margin.__all__, *regression.__all__]
