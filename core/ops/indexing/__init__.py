"""Reading and writing at positions."""

from __future__ import annotations

from ..exports import exported
from .gather import *
from .index_select import *
from .indexing import *
from .segments import *
from .take import *

# Type checkers follow the lines with `*`.
globals()["__all__"] = exported(__name__)
