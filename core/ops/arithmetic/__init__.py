"""Arithmetic of elements."""

from __future__ import annotations

from ..exports import exported
from .division import *
from .fused import *
from .pointwise import *
from .powers import *

# Type checkers follow the lines with `*`.
globals()["__all__"] = exported(__name__)
