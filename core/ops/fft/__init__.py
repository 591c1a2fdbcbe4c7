"""Fourier transforms."""

from __future__ import annotations

from ..exports import exported
from .fourier import *
from .fourier_dimensions import *
from .short_time import *

# Type checkers follow the lines with `*`.
globals()["__all__"] = exported(__name__)
