"""Random numbers."""

from __future__ import annotations

from ..exports import exported
from .distributions import *
from .fills import *
from .random import *
from .random_like import *
from .words import *

# Type checkers follow the lines with `*`.
globals()["__all__"] = exported(__name__)
