"""Products of matrices and vectors, and sums of products."""

from __future__ import annotations

from ..exports import exported
from .contractions import *
from .einsum import *
from .products import *

# Type checkers follow the lines with `*`.
globals()["__all__"] = exported(__name__)
