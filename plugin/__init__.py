"""The plugin API, version 1: all that a backend or extension imports.

``docs/backends`` walks through a whole package.
"""

from __future__ import annotations

from tensorplug.core.dtypes import (
    ALL_DTYPES,
    COMPLEXES,
    FLOATS,
    INTEGRAL,
    DType,
    Number,
    dtype_named,
)
from tensorplug.core.errors import (
    DeviceNotAvailableError,
    KernelContractError,
    KernelNotFoundError,
    PluginError,
    RegistrationError,
)
from tensorplug.core.layers import Layer
from tensorplug.core.operators import Op, Spec, composite, get_op, primitive, primitive_tuple
from tensorplug.core.plugins import API_VERSION, GROUP, hookimpl
from tensorplug.core.resolution import Kernel
from tensorplug.core.runtime import CAPABILITIES, DeviceRuntime
from tensorplug.core.shapes import (
    Shape,
    broadcast_shapes,
    contiguous_strides,
    normalize_dim,
    normalize_dims,
    reduced_shape,
)

from .tables import KernelTable

__all__ = [
    "ALL_DTYPES",
    "API_VERSION",
    "CAPABILITIES",
    "COMPLEXES",
    "FLOATS",
    "GROUP",
    "INTEGRAL",
    "DType",
    "DeviceNotAvailableError",
    "DeviceRuntime",
    "Kernel",
    "KernelContractError",
    "KernelNotFoundError",
    "KernelTable",
    "Layer",
    "Number",
    "Op",
    "PluginError",
    "RegistrationError",
    "Shape",
    "Spec",
    "broadcast_shapes",
    "composite",
    "contiguous_strides",
    "dtype_named",
    "get_op",
    "hookimpl",
    "normalize_dim",
    "normalize_dims",
    "primitive",
    "primitive_tuple",
    "reduced_shape",
]
