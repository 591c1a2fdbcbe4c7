"""Tensors, operators, dispatch and plugins: what everything else builds on."""

from __future__ import annotations

from typing import Any as _Any

from . import annotation_names as _annotation_names, ops, plugins
from .device import meta
from .device.device import Device
from .device.dtypes import DType, Number
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

_annotation_names.provide(__name__, DType=DType, Device=Device, Number=Number, Tensor=Tensor)
# Their module is loaded on first use.
_annotation_names.provide(__name__, TypedStorage=_Any, UntypedStorage=_Any)
