"""Joining tensors; grids and combinations of the elements of several."""

from __future__ import annotations

from ..exports import exported
from .grids import *
from .joining import *

# Type checkers follow the lines with `*`.
globals()["__all__"] = exported(__name__)
