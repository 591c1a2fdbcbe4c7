"""Names below torch's public ones that single libraries import, beside :mod:`.internals`."""

from __future__ import annotations

import contextlib
import enum
import functools
import math
import warnings
from collections import defaultdict
from typing import Any

from tensorplug import nn, storage
from tensorplug._devices import WELL_KNOWN
from tensorplug.core import Device, Tensor
from tensorplug.core.device.dtypes import DType, bool_
from tensorplug.core.dispatch import overrides
from tensorplug.core.errors import LinAlgError
from tensorplug.core.tensor.base import storage_of
from tensorplug.distributions import Gamma
from tensorplug.nn import functional_call
from tensorplug.nn.modules import dropout

from . import loaders
from .compiling import no, nothing, unchanged

_Groups = dict[tuple[Device, DType], tuple[list[list[Any]], list[int]]]


class Tag(enum.Enum):
    """What torch says of its ops; those of tensorplug have none of it."""

    core = enum.auto()
    data_dependent_output = enum.auto()
    dynamic_output_shape = enum.auto()
    inplace_view = enum.auto()
    needs_fixed_stride_order = enum.auto()
    nondeterministic_seeded = enum.auto()
    pointwise = enum.auto()
    pt2_compliant_tag = enum.auto()


class DecoratorContextManager(contextlib.ContextDecorator):
    """Base of contexts that decorate functions, too: each call has a context of its own."""

    def clone(self) -> Any:
        """Return another context like this one."""
        return type(self)()

    def _recreate_cm(self) -> Any:
        return self.clone()


def _grouped(tensors: list[list[Any]], with_indices: bool = False) -> _Groups:
    """Return lists of tensors in parts, by the device and dtype of the first list's."""
    groups: _Groups = defaultdict(lambda: ([[] for _ in tensors], []))
    for number, values in enumerate(zip(*tensors, strict=True)):
        parts, numbers = groups[values[0].device, values[0].dtype]
        for part, value in zip(parts, values, strict=True):
            part.append(value)
        if with_indices:
            numbers.append(number)
    return dict(groups)


@functools.cache
def _warn_once(msg: str, stacklevel: int = 1) -> None:
    """Warn, unless it was said before."""
    warnings.warn(msg, stacklevel=stacklevel + 1)


def _filled(tensor: Tensor, value: float) -> Tensor:
    """Fill a tensor without recording it."""
    return nn.init.constant_(tensor, value)


def _gamma(concentration: Tensor, generator: Any = None) -> Tensor:
    """Draw from gamma distributions of rate 1."""
    return Gamma(concentration, concentration.new_ones(())).rsample()


def _device_type() -> str | None:
    """Return the first type of device beside "cpu" that is there."""
    return next((kind for kind in WELL_KNOWN if _module_of(kind).is_available()), None)


def _module_of(kind: str) -> Any:
    import tensorplug

    return getattr(tensorplug, kind)


def _share(one: Tensor, other: Tensor) -> bool:
    """Return whether two tensors show the same memory."""
    return storage_of(one) is storage_of(other)


def _reparametrize_module(
    module: nn.Module,
    parameters_and_buffers: dict[str, Tensor],
    tie_weights: bool = False,
    strict: bool = False,
    stack_weights: bool = False,
) -> Any:
    """Return a context in which a module holds other tensors."""
    return functional_call._swapped(module, parameters_and_buffers, tie_weights, strict)


def _stand_ins(names: str) -> dict[str, type]:
    """Return classes of which nothing is an instance."""
    return {name: type(name, (), {"__doc__": "Nothing is an instance."}) for name in names.split()}


def _canonical_mask(
    mask: Tensor | None,
    mask_name: str,
    other_type: DType | None,
    other_name: str,
    target_type: DType,
    check_other: bool = True,
) -> Tensor | None:
    """Return a mask of attention as floats to add: -inf where a mask of bool is True."""
    if mask is None:
        return None
    if not (mask.dtype.is_floating_point or mask.dtype is bool_):
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype is not other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. "
            "Use same type for both instead.",
            stacklevel=2,
        )
    if mask.dtype.is_floating_point:
        return mask
    return mask.new_zeros(mask.shape, dtype=target_type).masked_fill_(mask, -math.inf)


_SCHEMES = (
    "per_tensor_affine per_tensor_symmetric per_channel_affine per_channel_symmetric "
    "per_channel_affine_float_qparams"
)

ADDITIONS: dict[str, dict[str, Any]] = {
    "torch": {
        **{name: f"torch.{name}" for name in _SCHEMES.split()},  # names of how numbers are quantized
        "has_cuda": False,
        "StorageBase": storage.UntypedStorage, "Tag": Tag, "_standard_gamma": _gamma, "set_vital": nothing,
    },
    "torch.nn.utils.stateless": {"_reparametrize_module": _reparametrize_module},
    "torch._C": {
        "_LinAlgError": LinAlgError,
        **dict.fromkeys(("_get_cudnn_enabled", "_is_tracing"), no),
        "Tag": Tag,
        "_current_graph_task_id": lambda: -1,
        "_is_alias_of": _share,
        "_is_torch_function_mode_enabled": overrides.modes_active,
        "_set_math_sdp_allow_fp16_bf16_reduction": nothing,
    },
    "torch._dynamo.utils": {"counters": defaultdict(dict), "warn_once": _warn_once},
    "torch._guards": {"active_fake_mode": nothing, "detect_fake_mode": nothing},
    "torch._ops": _stand_ins("HigherOrderOperator OperatorBase"),
    "torch._subclasses.functional_tensor": {
        **_stand_ins("FunctionalTensor FunctionalTensorMode"),
        "disable_functional_mode": unchanged,
    },
    "torch._utils": {"_get_available_device_type": _device_type, "_get_device_module": _module_of},
    "torch.autograd": {"_is_checkpoint_valid": lambda: True},
    "torch.backends": {"__allow_nonbracketed_mutation": contextlib.nullcontext},
    "torch.backends.mha": {"get_fastpath_enabled": no, "set_fastpath_enabled": nothing},
    "torch.backends.nnpack": {"set_flags": lambda enabled: (False,)},
    "torch._dynamo.config": {"trace_autograd_ops": False},
    "torch.backends.cudnn": {"fp32_precision": "none"},
    "torch.cuda": {"_is_in_bad_fork": no},
    "torch.functional": {"F": nn.functional},
    "torch.multiprocessing": {"_set_thread_name": nothing},
    "torch.nn.functional": {
        "_canonical_mask": _canonical_mask,
        "_none_or_dtype": lambda tensor: None if tensor is None else tensor.dtype,
    },
    "torch.nn.init": {
        "_no_grad_fill_": _filled, "_no_grad_zero_": lambda tensor: _filled(tensor, 0.0),
    },
    "torch.nn.modules.dropout": {"_DropoutNd": dropout._Dropout},
    "torch.utils.data": {"_DatasetKind": loaders.DatasetKind},
    "torch.utils.data._utils": {"HAS_NUMPY": True},
    "torch.utils._contextlib": {"_DecoratorContextManager": DecoratorContextManager},
    "torch.utils._foreach_utils": {"_group_tensors_by_device_and_dtype": _grouped},
}  # fmt: skip
