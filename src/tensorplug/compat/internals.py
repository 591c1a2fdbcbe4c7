"""What libraries reach for below torch's public names: ``torch._C``, ``torch._utils`` and the like."""

from __future__ import annotations

import enum
import functools
import math
import tempfile
import types
from collections.abc import Callable
from typing import Any

from tensorplug._devices import WELL_KNOWN
from tensorplug.amp import autocast_mode
from tensorplug.amp.ops.amp import unscale, update_scale
from tensorplug.autograd import set_grad_enabled
from tensorplug.core import Device, Tensor
from tensorplug.core.device.dtypes import DType, bool_, get_default_dtype
from tensorplug.core.dispatch import overrides
from tensorplug.core.dispatch.keys import default_device
from tensorplug.core.ops import (
    arange,
    bincount,
    cat,
    segment_reduce,
    stack,
    view_as_real,
    zeros,
)
from tensorplug.core.tensor import printing
from tensorplug.core.tensor.layout import contiguous_format, memory_format
from tensorplug.core.tensor.shapes import Size
from tensorplug.nn.conversion import _parse_to
from tensorplug.optim.optimizer import ParamsT

from .carried import ExceptionWrapper
from .compiling import no, no_op_decorator, nothing


def _no_result(*args: Any, **kwargs: Any) -> None:
    """Return None: there is none of what is asked for."""


def _parsed(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """Take the arguments of ``Module.to`` apart: (device, dtype, non_blocking, memory_format)."""
    options = dict(kwargs)
    chosen = options.pop("memory_format", None)
    return (*_parse_to(args, options), chosen)


def _check(cond: bool, message: Callable[[], str] | None = None) -> None:
    _check_with(RuntimeError, cond, message)


def _check_with(
    error_type: type[Exception], cond: bool | Tensor, message: Callable[[], str] | None
) -> None:
    if not isinstance(cond, (bool, int)):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if not cond:
        raise error_type("Expected cond to be True" if message is None else str(message()))


def _check_of(error_type: type[Exception]) -> Callable[..., None]:
    return lambda cond, message=None: _check_with(error_type, cond, message)


def _check_is_size(value: Any, message: Callable[[], str] | None = None, **bounds: Any) -> None:
    _check(value >= 0, message)


def _update_scale(scale: Tensor, growth_tracker: Tensor, *others: Any) -> Tensor:
    update_scale(scale, growth_tracker, *others)
    return scale


def _check_tensor_all(cond: Tensor, message: Callable[[], str] | None = None) -> None:
    _check_tensor_all_with(RuntimeError, cond, message)


def _check_tensor_all_with(
    error_type: type[Exception], cond: Tensor, message: Callable[[], str] | None = None
) -> None:
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype is not bool_:
        raise TypeError(f"cond tensor must have dtype {bool_}, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


def _assert(condition: Any, message: str) -> None:
    if not isinstance(condition, bool) and (found := overrides.relevant((condition,))):
        # A symbolic trace has it as a node.
        overrides.handle(_assert, found, (condition, message), {})
    elif not condition:
        raise AssertionError(message)


def _shape_as_tensor(tensor: Tensor) -> Tensor:
    from tensorplug.core.tensor.creation import tensor as make

    return make(list(tensor.shape))


def _row_pointers(indices: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """Return where each row begins, of sorted row numbers."""
    counts = bincount(indices, minlength=size)
    pointers = cat([zeros(1, dtype=counts.dtype, device=counts.device), counts.cumsum(0)])
    return pointers.int() if out_int32 else pointers


def _row_numbers(
    crow: Tensor, col: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """Return the coordinates of elements that are stored row by row."""
    rows = arange(crow.numel() - 1, device=crow.device).repeat_interleave(crow.diff())
    pair = stack([col.to(rows.dtype), rows] if transpose else [rows, col.to(rows.dtype)])
    return pair.int() if out_int32 else pair


def _flattened(tensors: Any) -> Tensor:
    """Return the elements of dense tensors in one."""
    return cat([tensor.reshape(-1) for tensor in tensors])


def _unflattened(flat: Tensor, tensors: Any) -> tuple[Tensor, ...]:
    """Return views of a flat tensor in the shapes of `tensors`."""
    views, start = [], 0
    for tensor in tensors:
        views.append(flat[start : start + tensor.numel()].view(tensor.shape))
        start += tensor.numel()
    return tuple(views)


def _device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """Return the index of a device as libraries name it: a number, a text, a device."""
    if isinstance(device, int):
        return device
    if device is None:
        if optional:
            return 0
        raise ValueError("expected a device with an index, got None")
    chosen = Device(device)
    if chosen.type == "cpu":
        if allow_cpu:
            return -1
        raise ValueError(f"Expected a non cpu device, but got: {device}")
    return chosen.index or 0


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Replace complex tensors in lists by views of their real and imaginary parts."""
    for index, parameter in enumerate(params):
        if parameter.is_complex():
            for values in (params, *state_and_grads):
                values[index] = view_as_real(values[index])


def _without_recording(function: Callable[..., Any]) -> Callable[..., Any]:
    """Run an optimizer's step unrecorded, unless the option ``differentiable`` is set."""

    @functools.wraps(function)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorded = any(group.get("differentiable", False) for group in self.param_groups[:1])
        with set_grad_enabled(recorded):
            return function(self, *args, **kwargs)

    return step


def _default_to_fused_or_foreach(
    params: list[Any], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Return whether to update parameters in one fused call, or list by list."""
    return (False, False) if differentiable else (use_fused, not use_fused)


class _Required:
    """What stands for an option of an optimizer that has no default."""

    def __repr__(self) -> str:
        return "<required parameter>"


class DispatchKey(enum.Enum):
    """Torch's names of what a call is dispatched to; ops of tensorplug ask for none of them."""

    AutocastCPU = enum.auto()
    AutocastCUDA = enum.auto()
    AutocastXPU = enum.auto()
    AutogradCPU = enum.auto()
    AutogradCUDA = enum.auto()
    CPU = enum.auto()
    CUDA = enum.auto()
    FuncTorchBatched = enum.auto()
    Meta = enum.auto()


class _Guard:
    """A context that changes nothing: the part that it would switch off is not there."""

    def __init__(self, *args: Any) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass

    def __or__(self, other: _Guard) -> _Guard:
        return self


class ValueRanges:
    """The range of a symbolic size; sizes are plain ints here, so that nothing makes one."""

    def __init__(self, lower: Any, upper: Any) -> None:
        self.lower, self.upper = lower, upper


class _PrintOptions:
    """What ``set_printoptions`` said, as attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return printing.get_printoptions()[name]
        except KeyError:
            raise AttributeError(name) from None


class TensorType:
    """TorchScript's type of a tensor; nothing is an instance."""


class SymInt:
    """Torch's size that is not known yet. Sizes are plain ints here: nothing is an instance."""


class SymFloat:
    """Torch's number that is not known yet; nothing is an instance."""


class SymBool:
    """Torch's truth that is not known yet; nothing is an instance."""


_JIT_SETTERS = (
    "_jit_override_can_fuse_on_cpu", "_jit_override_can_fuse_on_gpu", "_jit_set_nvfuser_enabled",
    "_jit_set_nvfuser_guard_mode", "_jit_set_profiling_executor", "_jit_set_profiling_mode",
    "_jit_set_texpr_fuser_enabled",
)  # fmt: skip

ADDITIONS: dict[str, dict[str, Any]] = {
    "torch": {
        "OutOfMemoryError": MemoryError,
        "SymBool": SymBool,
        "SymFloat": SymFloat,
        "SymInt": SymInt,
        "TensorType": TensorType,
        "_amp_foreach_non_finite_check_and_unscale_": unscale,
        "_amp_update_scale_": _update_scale,
        "_assert": _assert,
        "_assert_async": _assert,
        "_check": _check,
        "_check_index": _check_of(IndexError),
        "_check_is_size": _check_is_size,
        "_check_not_implemented": _check_of(NotImplementedError),
        "_check_tensor_all": _check_tensor_all,
        "_check_tensor_all_with": _check_tensor_all_with,
        "_check_type": _check_of(TypeError),
        "_check_value": _check_of(ValueError),
        "_check_with": _check_with,
        "_convert_indices_from_coo_to_csr": _row_pointers,
        "_convert_indices_from_csr_to_coo": _row_numbers,
        "_segment_reduce": segment_reduce,
        "_shape_as_tensor": _shape_as_tensor,
        "get_autocast_cpu_dtype": lambda: autocast_mode.get_autocast_dtype("cpu"),
        "get_autocast_gpu_dtype": lambda: autocast_mode.get_autocast_dtype("cuda"),
        "is_autocast_cpu_enabled": lambda: autocast_mode.is_autocast_enabled("cpu"),
        "legacy_contiguous_format": contiguous_format,
        "sym_float": float,
        "sym_int": math.trunc,
        "sym_ite": lambda condition, yes, other: yes if condition else other,
        "sym_max": max,
        "sym_min": min,
        "sym_not": lambda value: not value,
        "sym_sqrt": math.sqrt,
        "sym_sum": sum,
    },
    "torch._C": {
        **dict.fromkeys(_JIT_SETTERS, no),
        **dict.fromkeys(("_jit_can_fuse_on_cpu", "_jit_can_fuse_on_gpu"), no),
        **dict.fromkeys(("_are_functorch_transforms_active", "_cuda_isInBadFork"), no),
        **dict.fromkeys(("_log_api_usage_once", "_cuda_clearCublasWorkspaces"), nothing),
        **dict.fromkeys(("_get_tracing_state", "_get_accelerator"), _no_result),
        "DisableTorchFunction": overrides.DisableTorchFunction,
        "DisableTorchFunctionSubclass": overrides.DisableTorchFunctionSubclass,
        "_disabled_torch_function_impl": overrides.disabled_torch_function_impl,
        "_has_torch_function": lambda args: overrides.modes_active() or bool(overrides.relevant(args)),
        "DispatchKey": DispatchKey,
        "DispatchKeySet": _Guard,
        "Size": Size,
        "_ExcludeDispatchKeyGuard": _Guard,
        "_TensorMeta": type(Tensor),
        "_get_default_device": lambda: str(default_device()),
        "_get_privateuse1_backend_name": lambda: "privateuseone",
        "device": Device,
        "dtype": DType,
        "memory_format": memory_format,
        "Graph": type("Graph", (), {"__doc__": "TorchScript's graph; nothing is an instance."}),
        "Value": type("Value", (), {"__doc__": "A value of TorchScript's graph; there is none."}),
    },
    "torch._C._distributed_c10d": {},
    "torch._C._distributed_rpc": {"_is_current_rpc_agent_set": no},
    "torch._C._functorch": {
        **dict.fromkeys(("is_batchedtensor", "is_gradtrackingtensor", "is_legacy_batchedtensor"), no),
        "maybe_current_level": _no_result,
    },
    "torch._C._nn": {"_parse_to": _parsed},
    "torch._prims_common": {
        "alert_not_deterministic": nothing,
        "is_contiguous_or_false": lambda tensor: tensor.is_contiguous(),
    },
    "torch._subclasses.fake_tensor": {"is_fake": no},
    "torch._tensor_str": {
        "PRINT_OPTS": _PrintOptions(),
        "_add_suffixes": lambda tensor_str, suffixes, indent, force_newline: printing.with_notes(
            tensor_str, suffixes, indent, force_newline
        ),
        "_str_intern": lambda inp, *, tensor_contents=None: printing.tensor_repr(
            inp, contents=tensor_contents
        ),
        "_tensor_str": printing.numbers_of,
    },
    "torch._utils": {
        "ExceptionWrapper": ExceptionWrapper,
        "_element_size": lambda dtype: dtype.itemsize,
        "_flatten_dense_tensors": _flattened,
        "_get_device_index": _device_index,
        "_unflatten_dense_tensors": _unflattened,
        "is_compiling": no,
    },
    "torch.fx.experimental.symbolic_shapes": {
        **dict.fromkeys(("free_symbols", "free_unbacked_symbols"), lambda value: set()),
        **dict.fromkeys(("guard_or_false", "guard_or_true", "guard_size_oblivious",
                         "statically_known_true"), bool),
        "GuardOnDataDependentSymNode": type("GuardOnDataDependentSymNode", (RuntimeError,), {}),
        "is_symbolic": no,
    },
    "torch.fx.experimental.proxy_tensor": {"get_proxy_mode": _no_result},
    "torch.optim.optimizer": {
        "_RequiredParameter": _Required,
        "_capturable_doc": "", "_differentiable_doc": "", "_foreach_doc": "", "_fused_doc": "",
        "_maximize_doc": "", "_params_doc": "",
        "_default_to_fused_or_foreach": _default_to_fused_or_foreach,
        "_disable_dynamo_if_unsupported": no_op_decorator,
        "_dispatch_sqrt": lambda x: x.sqrt() if isinstance(x, Tensor) else math.sqrt(x),
        "_get_capturable_supported_devices": lambda supports_xla=True: list(WELL_KNOWN),
        "_get_foreach_kernels_supported_devices": lambda: ["cpu", *WELL_KNOWN],
        "_get_fused_kernels_supported_devices": lambda: ["cpu", *WELL_KNOWN],
        "_get_scalar_dtype": lambda is_fused=None: get_default_dtype(),
        "_get_value": lambda x: x.item() if isinstance(x, Tensor) else x,
        "_params_t": ParamsT,
        "_stack_if_compiling": lambda x: x,
        "_to_scalar": lambda x: x.squeeze() if isinstance(x, Tensor) and x.dim() else x,
        "_use_grad_for_differentiable": _without_recording,
        "_view_as_real": _view_as_real,
        "required": _Required(),
    },
    "torch.mps": dict.fromkeys(
        ("current_allocated_memory", "driver_allocated_memory", "recommended_max_memory"), lambda: 0
    ),
    "torch._inductor.runtime.cache_dir_utils": {"cache_dir": tempfile.gettempdir},
    "torch.jit._recursive": {"concrete_type_store": types.SimpleNamespace(type_store={})},
    "torch.utils._sympy.numbers": {"IntInfinity": float, "int_oo": math.inf},
    "torch.utils._sympy.value_ranges": {"ValueRanges": ValueRanges},
}  # fmt: skip
