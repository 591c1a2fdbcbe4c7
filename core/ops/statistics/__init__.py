"""Variance, quantiles and histograms."""

from __future__ import annotations

from ..exports import exported
from .histograms import *
from .quantiles import *
from .variance import *

# Type checkers follow the lines with `*`.
globals()["__all__"] = exported(__name__)
