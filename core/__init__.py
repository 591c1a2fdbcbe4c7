"""Tensors, operators, dispatch and plugins: what everything else builds on."""

from __future__ import annotations

from . import ops, plugins
from .device import meta
from .device.device import Device
from .device.dtypes import DType
from .dispatch import explain, layers, resolution
from .tensor.tensor import Tensor

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
]
