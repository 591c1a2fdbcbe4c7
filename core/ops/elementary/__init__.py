"""Elementary functions and rounding."""

from __future__ import annotations

from ..exports import exported
from .activation import *
from .circular import *
from .exponential import *
from .rounding import *
from .trigonometry import *

# Type checkers follow the lines with `*`.
globals()["__all__"] = exported(__name__)
