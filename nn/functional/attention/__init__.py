"""Attention."""

from __future__ import annotations

from . import multi_head, scaled_dot_product
from .multi_head import *
from .scaled_dot_product import *

# Type checkers follow the lines with `*`.
globals()["__all__"] = [*multi_head.__all__, *scaled_dot_product.__all__]
