"""Reductions over dimensions."""

from __future__ import annotations

from ..exports import exported
from .extremes import *
from .hashing import *
from .reductions import *

# Type checkers follow the lines with `*`.
globals()["__all__"] = exported(__name__)
