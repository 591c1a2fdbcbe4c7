"""Special functions."""

from __future__ import annotations

from ..exports import exported
from .bessel import *
from .error_functions import *
from .gamma import *
from .polynomials import *

# Type checkers follow the lines with `*`.
globals()["__all__"] = exported(__name__)
