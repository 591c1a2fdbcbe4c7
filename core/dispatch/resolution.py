"""Resolution: which kernel serves (op, device type, dtype), and why the others do not.

The order: a preferred backend; the highest priority for the exact dtype; a kernel for any dtype
that accepts this one; the composite's decomposition; the fallback policy; an error that helps.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any

from ..contexts import Context, thread
from ..device.device import Device
from ..device.dtypes import (
    DType,
    bool_,
    complex32,
    complex64,
    float16,
    float32,
    on_default_dtype_change,
)
from ..device.meta import empty_meta, pointwise_kernel
from ..device.runtime import RefusingRuntime
from ..errors import KernelNotFoundError
from ..plugins import require_names
from ..tensor.base import TensorBase, wrap
from . import call_cache, contracts, fallback, fast_path, keys, op_registry
from .choice import Choice, choose, nearest
from .counts import count_preferences, settle
from .execution import known_natives
from .keys import DispatchKey, lock
from .op_registry import Op
from .state import dispatch_state

CAST = op_registry.handle("cast")


def native_kernel(op: Op, key: DispatchKey) -> bool:
    """Return whether a plugin's kernel serves the op on this key."""
    native = known_natives.get((op, key))
    if native is None:
        with lock:
            choice = choose(op, key.device.type, key.dtype)
            native = known_natives[op, key] = choice.way == "kernel"
    return native


# --- tables -----------------------------------------------------------------------------------


def make_stub(index: int, key: DispatchKey) -> Callable[..., Any]:
    """Return what an unused slot holds: it resolves the op, fills the slot, and calls."""

    def stub(*raw: Any) -> Any:
        op = op_registry.op_at(index)
        fill(op, key)
        result = key.kernels[index](*raw)
        outcome = key.results[index]
        if outcome is not None and contracts.is_uniform(key, raw):
            contracts.check_pointwise(op, key, raw, result, outcome.dtype)
        else:
            dispatch_state.verify = True  # the caller knows what the declaration says
        return result

    return stub


def fill(op: Op, key: DispatchKey) -> None:
    """Resolve an op for a key into the key's tables."""
    with lock:
        if isinstance(key.runtime, RefusingRuntime):
            return  # the stub was called while its device was being removed; the slot raises by now
        if not op.pointwise:
            choice = choose(op, key.device.type, key.dtype)
            kernel = raw_callable(op, key)
            writable = choice.kernel is not None and choice.kernel.out
            key.writers[op.index] = kernel if writable else None
            key.kernels[op.index] = kernel
            return
        compute, result = pointwise_keys(op, key)
        if key.is_meta:
            compute = key  # nothing is computed, so nothing needs to be converted first
        kernel = raw_callable(op, compute)
        if contracts.every_call:
            kernel = contracts.checking(op, compute, kernel, result.dtype)
        # The result's key and the writer first: a reader that sees the kernel sees them too.
        key.results[op.index] = result
        if compute is key:
            choice = choose(op, key.device.type, key.dtype)
            writable = choice.kernel is not None and choice.kernel.out and not contracts.every_call
            key.writers[op.index] = kernel if writable else None
            key.kernels[op.index] = kernel
        else:
            key.writers[op.index] = None
            key.kernels[op.index] = _converting(kernel, key, compute)


def pointwise_keys(op: Op, key: DispatchKey) -> tuple[DispatchKey, DispatchKey]:
    """Return the keys in which a pointwise op of inputs of one key computes and results."""
    probes = [
        empty_meta((1,), bool_ if index in op.masks else key.dtype) for index in range(op.arity)
    ]
    spec = op.function(*probes)
    return key.with_dtype(spec.key.dtype), key.with_dtype(spec.outputs[0][1])


def _converting(
    kernel: Callable[..., Any], key: DispatchKey, compute: DispatchKey
) -> Callable[..., Any]:
    """Return `kernel` behind a conversion of its inputs from one key to another."""
    cast = CAST.index
    dtype = compute.dtype

    def convert(*raw: Any) -> Any:
        if len(raw) > 1 and () in [array.shape for array in raw]:
            # It may be a number, which `key` need not be able to hold.
            raise fast_path.NeedsRule
        return kernel(*[key.kernels[cast](array, dtype) for array in raw])

    return convert


def raw_callable(op: Op, key: DispatchKey, preferred: tuple[str, ...] = ()) -> Callable[..., Any]:
    """Return a callable over raw arrays that runs the op on a key, whatever way serves it.

    Raises
    ------
    KernelNotFoundError
        If nothing does.
    """
    choice = choose(op, key.device.type, key.dtype, preferred)
    if dispatch_state.log_choice is not None:
        dispatch_state.log_choice(choice)
    served = _serving(choice, op, key)
    timer = dispatch_state.kernel_timer
    return served if timer is None else timer(choice, key, served)


_BELOW: dict[tuple[str, str, DType, str, bool], Callable[..., Any]] = {}


def kernel_below(
    op: str, device: str, dtype: DType, plugin: str, out: bool = False
) -> Callable[..., Any]:
    """Return what runs the op below the kernels of `plugin`; see ``plugin.kernel_below``."""
    key = op, device, dtype, plugin, out
    found = _BELOW.get(key)
    if found is None:
        with lock:
            asked = op_registry.get_op(op)
            tensor_key = keys.dispatch_key(Device(device), dtype)
            choice = choose(asked, device, dtype, (), plugin)
            found = _serving(choice, asked, tensor_key)
            if out and not (choice.kernel is not None and choice.kernel.out):
                found = _copying(found, tensor_key)
            _BELOW[key] = found
    return found


def _copying(function: Callable[..., Any], key: DispatchKey) -> Callable[..., Any]:
    """Return a kernel without ``out`` as one with it."""

    def run(*raw: Any, out: Any = None) -> Any:
        result = function(*raw)
        if out is None:
            return result
        key.runtime.copy_into(out, result)
        return out

    return run


def _serving(choice: Choice, op: Op, key: DispatchKey) -> Callable[..., Any]:
    """Return the callable that a choice stands for."""
    if choice.kernel is not None:
        return _on_device(choice.kernel.function, key)
    if choice.way == "decomposition":
        return _decomposed(op, key)
    if choice.way == "meta":
        return pointwise_kernel(op, key)
    if choice.way == "fallback":
        return fallback.fallback_kernel(op, key)
    if op.pointwise and key.dtype is complex32:
        return _widened(op, key)
    raise kernel_not_found(op, key)


def _widened(op: Op, key: DispatchKey) -> Callable[..., Any]:
    """Return the kernel for complex64 between conversions of pairs of halves, as torch computes them."""
    wide = key.with_dtype(complex64)
    kernel = raw_callable(op, wide)
    runtime = key.runtime
    narrow = {complex64: complex32, float32: float16}

    def run(*raw: Any) -> Any:
        result = kernel(*[key.kernels[CAST.index](array, complex64) for array in raw])
        if type(result) is not key.array_type:
            result = key.as_array(result)
        made = runtime.dtype(result)
        if made not in narrow:
            return result
        return key.with_dtype(made).kernels[CAST.index](result, narrow[made])

    return run


def _on_device(function: Callable[..., Any], key: DispatchKey) -> Callable[..., Any]:
    """Return a kernel that runs on the device of `key`, where its type has several."""
    guard, number = key.runtime.device_guard, key.device.index or 0
    if guard(number) is None:
        return function

    def run(*raw: Any, **options: Any) -> Any:
        with guard(number):  # type: ignore[union-attr]
            return function(*raw, **options)

    vars(run)["registered"] = function  # for fusers, who know their kernels by identity
    return run


def _decomposed(op: Op, key: DispatchKey) -> Callable[..., Any]:
    """Return the composite's body as a callable over raw arrays."""

    def run(*raw: Any) -> Any:
        with dispatch_state.gradient_off():
            return _raw(op.decompose(tuple([_tensors(value, key) for value in raw])))

    return run


def _tensors(value: Any, key: DispatchKey) -> Any:
    if type(value) is not key.array_type and getattr(value, "shape", None) == ():
        value = key.as_array(value)  # what the library has in place of a 0-d array
    if isinstance(value, key.array_type):
        return wrap(value, key.with_dtype(key.runtime.dtype(value)))
    if isinstance(value, (list, tuple)):
        return type(value)([_tensors(item, key) for item in value])
    return value


def _raw(value: Any) -> Any:
    if isinstance(value, TensorBase):
        return value._array
    return tuple([_raw(item) for item in value]) if isinstance(value, (tuple, list)) else value


def kernel_not_found(op: Op, key: DispatchKey) -> KernelNotFoundError:
    """Return the error for an op that nothing runs."""
    return KernelNotFoundError(
        f"no kernel for op {op.name!r} on device {key.device.type!r} with dtype "
        f"{key.dtype.name}.\n{nearest(op, key)}"
    )


def _reset() -> None:
    known_natives.clear()
    _PREFERRED.clear()
    _BELOW.clear()


# --- preference -------------------------------------------------------------------------------


_PREFERRED: dict[tuple[Op, DispatchKey, tuple[str, ...]], Callable[..., Any]] = {}


def preferred_backends() -> tuple[str, ...]:
    """Return the plugins this thread prefers, the most preferred first."""
    return thread.preferred


class prefer(Context, ContextDecorator):
    """Choose kernels of these plugins, where they have one, within a ``with`` block of this thread.

    Parameters
    ----------
    *backends : str
        Names of plugins, the most preferred first: ``with tp.prefer("cpu_numpy"): ...``

    Raises
    ------
    ValueError
        If no plugin has that name.
    """

    def __init__(self, *backends: str) -> None:
        require_names(backends)
        self._backends = backends

    def _changes(self) -> dict[str, Any]:
        return count_preferences() | {"preferred": (*self._backends, *thread.preferred)}


def _preferred_kernel(op: Op, tensor_key: DispatchKey) -> Callable[..., Any]:
    names = thread.preferred
    if not names:
        settle()
        return tensor_key.kernels[op.index]
    key = (op, tensor_key, names)
    found = _PREFERRED.get(key)
    if found is None:
        with lock:
            found = _PREFERRED[key] = raw_callable(op, tensor_key, names)
    return found


# What integers become decides slots and specs.
on_default_dtype_change(keys.reset_tables)
on_default_dtype_change(call_cache.clear_call_caches)
keys.on_reset(call_cache.clear_call_caches)
keys.on_reset(_reset)
dispatch_state.make_stub = make_stub
dispatch_state.native_kernel = native_kernel
dispatch_state.preferred_kernel = _preferred_kernel
