"""Linear algebra."""

from __future__ import annotations

from ..exports import exported
from .factors import *
from .functions import *
from .lowrank import *
from .lu import *
from .norms import *
from .solvers import *
from .spectra import *
from .triangular import *

# Type checkers follow the lines with `*`.
globals()["__all__"] = exported(__name__)
