"""The layer that converts what ops get, and the state of each thread that says whether it does."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.contexts import declare, thread
from tensorplug.core.device.device import Device
from tensorplug.core.device.dtypes import (
    FLOATING,
    DType,
    dtype_named,
    float32,
    float64,
    promote_types,
)
from tensorplug.core.dispatch.autocast_policies import Policy, named, policy_of
from tensorplug.core.dispatch.keys import DispatchKey
from tensorplug.core.dispatch.layers import Layer, note_changed, recording
from tensorplug.core.dispatch.op_registry import Op, first_tensor
from tensorplug.core.plugins import discovery
from tensorplug.core.tensor.base import TensorBase, version_of


@dataclass(frozen=True)
class Settings:
    """What autocast is to do in one thread."""

    enabled: dict[str, bool] = field(default_factory=dict)
    dtypes: dict[str, DType] = field(default_factory=dict)
    cache_enabled: bool = True
    # By the tensor's id, dtype, whether recorded and the layers that saw the cast, such as a capture's:
    # the tensor, its version, and what it became. Each outermost context has one of its own.
    cache: dict[tuple[int, DType, bool, tuple[Layer, ...]], tuple[Tensor, int, Tensor]] | None = (
        None
    )


# `within_cast`: within an op whose arguments are converted; what it consists of is left alone.
declare(autocast=Settings(), within_cast=False)


def default_dtype(device_type: str) -> DType:
    """Return the dtype that autocast computes in on a device type unless told otherwise."""
    chosen = thread.autocast.dtypes.get(device_type)
    if chosen is None:
        chosen = dtype_named(discovery.find_runtime(device_type).autocast_dtype)
    return chosen


class AutocastLayer(Layer):
    """Converts the arguments of ops as their policies say."""

    name = "autocast"
    order = 200
    nested = True  # an op without a policy may consist of such that have one

    def graph_key(self) -> Hashable:
        """Return for which device types autocast is on, with their dtypes, and whether casts are kept."""
        settings = thread.autocast
        on = [
            f" {kind} {default_dtype(kind)}" for kind in settings.enabled if settings.enabled[kind]
        ]
        return (
            f"autocast{''.join(sorted(on))}{'' if settings.cache_enabled else ', casts not kept'}"
        )

    def __call__(
        self,
        op: Op,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        proceed: Callable[..., Any],
    ) -> Any:
        """Convert the arguments of a call, and pass it on."""
        # What formulas consist of runs in the dtypes of the calls that they differentiate.
        if thread.within_cast or thread.in_formula or op.name.rstrip("_") not in named:
            return proceed(*args, **kwargs)
        if op.name not in named or kwargs.get("out") is not None:
            return _as_it_is(args, kwargs, proceed)  # what is written to has its dtype
        first = first_tensor((*args, *kwargs.values()))
        if first is None:
            return proceed(*args, **kwargs)
        device = first._key.device.type
        policy = policy_of(op.name, device)
        if policy is None or not thread.autocast.enabled.get(device):
            return proceed(*args, **kwargs)
        if policy == "refuse":
            raise RuntimeError(
                f"{op.name}() is unsafe to autocast on {device}: in half precision its gradient "
                "overflows; use the variant with logits, or autocast(enabled=False) around it"
            )
        thread.within_cast = True
        try:
            # What is asked for by dtype= is given.
            if policy != "keep" and kwargs.get("dtype") is None:
                dtype = _dtype_for(policy, (*args, *kwargs.values()), device)
                args = tuple([convert(arg, device, dtype) for arg in args])
                kwargs = {name: convert(value, device, dtype) for name, value in kwargs.items()}
            return proceed(*args, **kwargs)
        finally:
            thread.within_cast = False


def _as_it_is(args: tuple[Any, ...], kwargs: dict[str, Any], proceed: Callable[..., Any]) -> Any:
    thread.within_cast = True
    try:
        return proceed(*args, **kwargs)
    finally:
        thread.within_cast = False


def _dtype_for(policy: Policy, values: tuple[Any, ...], device: str) -> DType:
    if policy == "lower":
        return default_dtype(device)
    if policy == "float32":
        return float32
    return _widest(values, device, default_dtype(device))


layer = AutocastLayer()


def _eligible(key: DispatchKey, device: str) -> bool:
    dtype = key.dtype
    return key.device.type == device and dtype.category == FLOATING and dtype is not float64


def convert(value: Any, device: str, dtype: DType) -> Any:
    """Return nested values with the floating-point tensors of a device type, float64 aside, converted."""
    if isinstance(value, TensorBase):
        key = value._key
        if key.dtype is dtype or not _eligible(key, device):
            return value
        return _cast(value, dtype)
    if type(value) in (list, tuple):
        return type(value)([convert(item, device, dtype) for item in value])
    return value


def _cast(tensor: Any, dtype: DType) -> Tensor:
    """Return a tensor in another dtype; that of a parameter is kept until the outermost context ends."""
    note_changed()
    cache = thread.autocast.cache
    if not (
        cache is not None
        and thread.autocast.cache_enabled
        and dtype is not float32
        and tensor.dtype is float32
        and tensor.requires_grad
        and tensor._view is None
        # Of a leaf; `is_leaf` would end captures, as the program's own look does.
        and tensor._node is None
    ):
        return tensor.to(dtype)
    others = tuple([other for other in thread.stack if other is not layer])
    key = id(tensor), dtype, recording.enabled, others
    version = version_of(tensor)
    known = cache.get(key)
    if known is not None and known[1] == version:
        return known[2]
    result: Tensor = tensor.to(dtype)
    cache[key] = tensor, version, result
    return result


def _widest(values: tuple[Any, ...], device: str, least: DType) -> DType:
    dtype = least
    for value in values:
        if isinstance(value, TensorBase):
            if _eligible(value._key, device):
                dtype = promote_types(dtype, value._key.dtype)
        elif isinstance(value, (list, tuple)):
            dtype = _widest(tuple(value), device, dtype)
    return dtype


def type_of(device_type: str) -> str:
    """Return a device type, which has to be a string; an index is dropped."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    return Device(device_type).type
