"""Tensors, operators, dispatch and plugins: what everything else builds on."""

from __future__ import annotations

from . import explain, layers, meta, ops, plugins, resolution, tensor
from .devices import Device
from .dtypes import DType
from .tensor import Tensor

__all__ = [
    "DType",
    "Device",
    "Tensor",
    "explain",
    "layers",
    "meta",
    "ops",
    "plugins",
    "resolution",
    "tensor",
]
