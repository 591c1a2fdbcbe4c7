"""Random numbers."""

from __future__ import annotations

from ..exports import exported
from .choices import *
from .counts import *
from .distributions import *
from .fills import *
from .permutation import *
from .random import *
from .random_like import *
from .words import *

# Type checkers follow the lines with `*`.
globals()["__all__"] = exported(__name__)
