"""Views by strides: windows, diagonals, complex numbers as pairs, other dtypes; and what writes to them."""

from __future__ import annotations

from ..exports import exported
from .diagonals import *
from .numbers import *
from .scattered import *
from .strided import *

# Type checkers follow the lines with `*`.
globals()["__all__"] = exported(__name__)
