"""Views in another shape."""

from __future__ import annotations

from ..exports import exported
from .dimension_order import *
from .expansion import *
from .shape import *
from .splitting import *

# Type checkers follow the lines with `*`.
globals()["__all__"] = exported(__name__)
