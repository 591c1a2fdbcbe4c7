"""Pooling."""

from __future__ import annotations

from . import adaptive, fractional, pooling
from .adaptive import *
from .fractional import *
from .pooling import *

# Type checkers follow the lines with `*`.
globals()["__all__"] = [*adaptive.__all__, *fractional.__all__, *pooling.__all__]
