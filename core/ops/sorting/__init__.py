"""Sorting, searching and sets."""

from __future__ import annotations

from ..exports import exported
from .searching import *
from .sets import *
from .sorting import *

# Type checkers follow the lines with `*`.
globals()["__all__"] = exported(__name__)
