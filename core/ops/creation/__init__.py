"""Tensors made from numbers: filled, ranges, windows."""

from __future__ import annotations

from ..exports import exported
from .creation import *
from .creation_like import *
from .ranges import *
from .windows import *
from .windows_signal import *

# Type checkers follow the lines with `*`.
globals()["__all__"] = exported(__name__)
