"""Ops as nodes of ONNX, by family. Composites that are not here are written as what they are made of."""

from __future__ import annotations

from . import indexing, layers, pointwise, reductions, shape
from .table import LOWERINGS, lowering

__all__ = ["LOWERINGS", "lowering"]
