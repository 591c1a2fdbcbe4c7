"""The plugin API, version 1: all that a backend or extension imports.

``docs/backends`` walks through a whole package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.autograd.engine.backward import grad
from tensorplug.autograd.engine.derivatives import derivative, not_differentiable
from tensorplug.autograd.forward.tangents import holomorphic, linear, tangent
from tensorplug.autograd.function import Function, once_differentiable
from tensorplug.autograd.transforms.pytree import tree_flatten, tree_unflatten
from tensorplug.autograd.vmap.vmap_rules import VmapInfo, first_dim_is_batch, vmap_rule
from tensorplug.core.device.determinism import alert_not_deterministic, deterministic_wanted
from tensorplug.core.device.dtypes import (
    ALL_DTYPES,
    COMPLEXES,
    FLOAT8,
    FLOATS,
    INTEGRAL,
    DType,
    Number,
    complex32,
    dtype_named,
    wrap_integer,
)
from tensorplug.core.device.generator import generator_of
from tensorplug.core.device.queues import queues_differ, threads_elsewhere
from tensorplug.core.device.runtime import CAPABILITIES, DeviceRuntime, RuntimeExtension
from tensorplug.core.dispatch.autocast_policies import AutocastPolicy
from tensorplug.core.dispatch.contracts import check_every_call
from tensorplug.core.dispatch.fast_path import hot_path_compiled
from tensorplug.core.dispatch.kernel_registry import DeferredKernels, Kernel
from tensorplug.core.dispatch.layers import Layer
from tensorplug.core.dispatch.op_registry import (
    Delegated,
    Op,
    Spec,
    composite,
    get_op,
    primitive,
    primitive_tuple,
)
from tensorplug.core.errors import (
    DerivativeContractError,
    DeviceNotAvailableError,
    KernelContractError,
    KernelNotFoundError,
    LinAlgError,
    OutOfMemoryError,
    PluginError,
    RegistrationError,
)
from tensorplug.core.ops.rules import check_tensor, elementwise
from tensorplug.core.plugins import API_VERSION, GROUP, hookimpl
from tensorplug.core.plugins.fusers import (
    FUSED,
    ArrayFacts,
    FusedCall,
    Fuser,
    FusionProgram,
    FusionStep,
    Operand,
    Region,
)
from tensorplug.core.plugins.installation import Advice, install_command
from tensorplug.core.plugins.process_groups import (
    Communicator,
    ProcessGroupBackend,
    Rendezvous,
    Request,
)
from tensorplug.core.plugins.threads import renew_thread_limit
from tensorplug.core.tensor.shapes import (
    Shape,
    broadcast_shapes,
    contiguous_strides,
    normalize_dim,
    normalize_dims,
    reduced_shape,
)
from tensorplug.core.tensor.shared_memory import SharedMemory

from .below import kernel_below
from .dlpack import BitsOfBfloat16, as_bfloat16
from .host_kernels import host_kernels
from .regions import StepGroup, is_dense, pointwise_regions, step_groups
from .strided import Layout, view_kernels, view_layout
from .tables import KernelTable

if TYPE_CHECKING:
    from .standard import ArrayApiBackend, ArrayApiRuntime, array_api_backend

__all__ = [
    "ALL_DTYPES",
    "API_VERSION",
    "CAPABILITIES",
    "COMPLEXES",
    "FLOAT8",
    "FLOATS",
    "FUSED",
    "GROUP",
    "INTEGRAL",
    "Advice",
    "ArrayApiBackend",
    "ArrayApiRuntime",
    "ArrayFacts",
    "AutocastPolicy",
    "BitsOfBfloat16",
    "Communicator",
    "DType",
    "DeferredKernels",
    "Delegated",
    "DerivativeContractError",
    "DeviceNotAvailableError",
    "DeviceRuntime",
    "Function",
    "FusedCall",
    "Fuser",
    "FusionProgram",
    "FusionStep",
    "Kernel",
    "KernelContractError",
    "KernelNotFoundError",
    "KernelTable",
    "Layer",
    "Layout",
    "LinAlgError",
    "Number",
    "Op",
    "Operand",
    "OutOfMemoryError",
    "PluginError",
    "ProcessGroupBackend",
    "Region",
    "RegistrationError",
    "Rendezvous",
    "Request",
    "RuntimeExtension",
    "Shape",
    "SharedMemory",
    "Spec",
    "StepGroup",
    "VmapInfo",
    "alert_not_deterministic",
    "array_api_backend",
    "as_bfloat16",
    "broadcast_shapes",
    "check_every_call",
    "check_tensor",
    "complex32",
    "composite",
    "contiguous_strides",
    "derivative",
    "deterministic_wanted",
    "dtype_named",
    "elementwise",
    "first_dim_is_batch",
    "generator_of",
    "get_op",
    "grad",
    "holomorphic",
    "hookimpl",
    "host_kernels",
    "hot_path_compiled",
    "install_command",
    "is_dense",
    "kernel_below",
    "linear",
    "normalize_dim",
    "normalize_dims",
    "not_differentiable",
    "once_differentiable",
    "pointwise_regions",
    "primitive",
    "primitive_tuple",
    "queues_differ",
    "reduced_shape",
    "renew_thread_limit",
    "step_groups",
    "tangent",
    "threads_elsewhere",
    "tree_flatten",
    "tree_unflatten",
    "view_kernels",
    "view_layout",
    "vmap_rule",
    "wrap_integer",
]


if not TYPE_CHECKING:  # type checkers are to report what is missing

    def __getattr__(name: str) -> Any:
        """Import the adapter of array libraries when it is asked for: few plugins do."""
        if name not in ("ArrayApiBackend", "ArrayApiRuntime", "array_api_backend"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from . import standard

        return getattr(standard, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
