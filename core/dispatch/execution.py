"""From a spec to a kernel and back to tensors.

:func:`execute` is the way of every call that a rule has made a :class:`~.op.Spec` for; :func:`show` is the
short way of views.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from ..device.dtypes import DType
from ..device.meta import results
from ..device.runtime import RefusingRuntime
from ..errors import KernelContractError
from ..tensor.base import Storage, TensorBase, new_tensor, storage_of
from ..tensor.shapes import Shape
from . import contracts, layers
from .call_cache import CachedCall
from .contracts import violation
from .failed_calls import out_of_memory
from .keys import DispatchKey
from .op import Delegated, Op, Spec
from .state import dispatch_state


def kernel_of(op: Op, key: DispatchKey) -> Callable[..., Any]:
    """Return the kernel for an op on a key, as this thread's preferences have it."""
    if dispatch_state.preferences:
        return dispatch_state.preferred_kernel(op, key)
    return key.kernels[op.index]


def native_kernel(op: Op, key: DispatchKey) -> bool:
    """Return whether a plugin's kernel serves the op on this key."""
    native = known_natives.get((op, key))
    return dispatch_state.native_kernel(op, key) if native is None else native


#: What was found out of that so far.
known_natives: dict[tuple[Op, DispatchKey], bool] = {}


def show(op: Op, input: Any, values: tuple[Any, ...], shape: Shape) -> Any:
    """Call a view op that keeps the dtype, with canonical arguments whose result has `shape`."""
    key = input._key
    if dispatch_state.layers_active and dispatch_state.takes_over((input,), None):
        return dispatch_state.through_layers(op, (input, *values), {})
    if key.is_meta:
        return execute(op, op.function(input, *values))
    return _show(op, key, input, values, shape, key)


def _show(
    op: Op,
    key: DispatchKey,
    source: Any,
    values: tuple[Any, ...],
    shape: Shape,
    result: DispatchKey,
) -> Any:
    if dispatch_state.preferences:
        array = dispatch_state.preferred_kernel(op, key)(source._array, *values)
    elif len(values) == 1:
        array = key.kernels[op.index](source._array, values[0])
    else:
        array = key.kernels[op.index](source._array, *values)
    if dispatch_state.verify:
        verify(op, key, array, ((shape, result.dtype),))
    elif array.shape != shape:
        raise contract(op, key, f"shape {list(array.shape)}", f"{list(shape)}")
    output = new_tensor(array, result, shape)
    storage = source._storage
    if storage is None:
        storage = source._storage = Storage.__new__(Storage)  # no call of an __init__
        storage.version = source._writes
        storage.mirror = None
    output._storage = storage
    if dispatch_state.planning:
        note_shown(op, source, values, output)
    dispatch_state.gradient.record_view(op, source, values, output, None)
    return output


class _Shown(threading.local):
    """The views made in a call that is to be planned, see :mod:`.view_calls`."""

    views: list[tuple[Op, Any, tuple[Any, ...], Any]] | None = None
    # The latest op, with its arguments and views, that made one node the maker of several.
    together: tuple[Op, tuple[Any, ...], tuple[Any, ...]] | None = None


shown_views = _Shown()
_NOTED = 256  # what an interrupt leaves behind must not grow


def note_shown(op: Op, source: Any, values: tuple[Any, ...], output: Any) -> None:
    """Note a view; called while some thread plans a call."""
    views = shown_views.views
    if views is not None and len(views) < _NOTED:
        views.append((op, source, values, output))


def note_together(op: Op, values: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
    """Note views that one node is the maker of; called while some thread plans a call."""
    if shown_views.views is not None:
        shown_views.together = op, values, outputs


def execute(op: Op, spec: Spec) -> Any:
    """Call the kernel that a spec asks for; wrap and record what it returns."""
    if type(spec) is Delegated:
        return spec.result
    key = spec.key
    if op.view and not (dispatch_state.verify or key.is_meta):
        shape, dtype = spec.outputs[0]
        if shape is not None:
            return _show(op, key, spec.values[0], spec.values[1:], shape, key.with_dtype(dtype))
    raw, state = unwrap(op, spec.values, key)
    if key.is_meta:
        results = meta_results(op, spec, raw)
    else:
        results = call_kernel(op, key, raw)
        if dispatch_state.verify:
            verify(op, key, results, spec.outputs)
    outputs = spec.outputs
    if len(outputs) == 1:
        shape, dtype = outputs[0]
        output = _wrap_checked(op, key, results, shape, dtype)
        if op.view:
            output._storage = storage_of(spec.values[0])
            dispatch_state.gradient.record_view(op, spec.values[0], spec.values[1:], output, None)
        elif state and (not dispatch_state.grad_disabled or dispatch_state.gradient.enabled()):
            dispatch_state.gradient.record(op, spec.values, (output,))
        if dispatch_state.inference:
            dispatch_state.gradient.mark_if_inference(output)
        return output
    if len(results) != len(outputs):
        raise contract(op, key, f"{len(results)} outputs", f"{len(outputs)}")
    wrapped = tuple(
        [
            _wrap_checked(op, key, array, shape, dtype)
            for array, (shape, dtype) in zip(results, outputs, strict=True)
        ]
    )
    if state and (not dispatch_state.grad_disabled or dispatch_state.gradient.enabled()):
        dispatch_state.gradient.record(op, spec.values, wrapped)
    if dispatch_state.inference:
        for output in wrapped:
            dispatch_state.gradient.mark_if_inference(output)
    named: Any = op.named
    return wrapped if named is None else named(*wrapped)


def call_kernel(op: Op, key: DispatchKey, raw: list[Any]) -> Any:
    """Call the kernel of an op, which may warn as it likes."""
    kernel = kernel_of(op, key)
    try:
        return kernel(*raw)
    except Warning:  # where warnings are errors; what an array library warns of is none to tensors
        with key.runtime.quiet():
            return kernel(*raw)
    except Exception as error:
        note_kernel(error, op, key, raw)
        raise


def run_cached(op: Op, cached: CachedCall, args: tuple[Any, ...]) -> Any:
    """Return what the kernel returns in a cached call."""
    raw = cached.raw.copy()
    if cached.listed:
        raw[0] = [tensor._array for tensor in args[0]]
    else:
        for number, index in enumerate(cached.slots):
            tensor = args[cached.arg_indices[number]]
            raw[index] = tensor._array
    key = cached.key
    try:
        return key.kernels[op.index](*raw)
    except Warning:  # where warnings are errors
        return call_kernel(op, key, raw)
    except Exception as error:
        note_kernel(error, op, key, raw)
        raise


def note_kernel(error: Exception, op: Op, key: DispatchKey, raw: Any) -> None:
    """Add a note to an error: whose kernel raised it. Where there is no memory, raise ours."""
    if isinstance(error, MemoryError):
        raise out_of_memory(op.name, error) from None
    contracts.note_kernel(error, op, key, raw)


def unwrap(op: Op, values: tuple[Any, ...], key: DispatchKey) -> tuple[list[Any], int]:
    """Return the kernel's arguments, and whether any tensor among them may require grad.

    Raises
    ------
    RuntimeError
        If the tensors are on different devices.
    """
    raw: list[Any] = []
    state = 0
    device = key.device
    numbers = op.pointwise
    for value in values:
        if isinstance(value, TensorBase):
            if value._key is not key and value._key.device is not device:
                raise _devices_differ(op, values)
            state |= value._state
            raw.append(value._array)
        elif isinstance(value, (list, tuple)) and value and type(value[0]) is not int:
            arrays: list[Any] = []
            found = False
            for item in value:
                if isinstance(item, TensorBase):
                    if item._key is not key and item._key.device is not device:
                        raise _devices_differ(op, values)
                    found = True
                    state |= item._state
                    arrays.append(item._array)
                else:
                    arrays.append(item)
            raw.append(arrays if found else key.scalar(value) if numbers else value)
        else:
            raw.append(key.scalar(value) if numbers else value)
    return raw, state


def _wrap_checked(op: Op, key: DispatchKey, array: Any, shape: Shape | None, dtype: DType) -> Any:
    result = key if dtype is key.dtype else key.with_dtype(dtype)
    if type(array) is not result.array_type:
        array = result.as_array(array)
    if shape is None:
        shape = tuple(array.shape)
        if dispatch_state.layers_active:
            layers.note_read(None, "the shape of what it returns")
    elif array.shape != shape:
        raise contract(op, key, f"shape {list(array.shape)}", f"{list(shape)}")
    return new_tensor(array, result, shape)


def contract(op: Op, key: DispatchKey, got: str, expected: str) -> KernelContractError:
    """Return the error for a kernel whose result is not what the op's declaration says."""
    return violation(op, key, got, expected)


def verify(op: Op, key: DispatchKey, results: Any, outputs: Any) -> None:
    """Check what the first call of a kernel returned."""
    dispatch_state.verify = contracts.every_call
    contracts.check_outputs(op, key, results, outputs)


def overlaps(tensor: Any) -> bool:
    """Return whether elements of a tensor share memory, as those of an expanded one do."""
    runtime = tensor._key.runtime
    if runtime.is_contiguous(tensor._array):
        return False
    strides = runtime.strides(tensor._array)
    if 0 not in strides:
        return False
    pairs = zip(tensor._shape, strides, strict=True)
    return any([size > 1 and not stride for size, stride in pairs])


def shares_elements(tensor: Any) -> bool:
    """Return whether elements of a tensor may share memory, as those of an expanded one and of windows do."""
    runtime = tensor._key.runtime
    if runtime.is_contiguous(tensor._array):
        return False
    return _may_share(tensor._shape, runtime.strides(tensor._array))


@functools.lru_cache(maxsize=1024)  # asked for each write into a view
def _may_share(shape: Shape, strides: Shape) -> bool:
    if not _meet(strides[::-1], shape[::-1]):
        return False
    pairs = sorted(zip(strides, shape, strict=True))
    return _meet([stride for stride, _ in pairs], [size for _, size in pairs])


def _meet(strides: Any, sizes: Any) -> bool:
    """Return whether a stride is no larger than what the dimensions before it reach."""
    reach = 0
    for index in range(len(sizes)):
        if sizes[index] > 1:
            if strides[index] <= reach:
                return True
            reach += strides[index] * (sizes[index] - 1)
    return False


def overlap_error(name: str) -> RuntimeError:
    """Return the error of a write to a tensor whose elements share memory."""
    return RuntimeError(
        f"{name}(): unsupported operation: more than one element of the written-to tensor refers to a "
        "single memory location. Please clone() the tensor before performing the operation."
    )


def broadcast_error(name: str, shape: Shape, wanted: Shape) -> RuntimeError:
    """Return the error of a write of one shape to a tensor of another, which is not broadcast."""
    return RuntimeError(
        f"{name}(): output with shape {list(shape)} doesn't match the broadcast shape {list(wanted)}"
    )


def _devices_differ(op: Op, values: tuple[Any, ...]) -> Exception:
    devices: dict[str, None] = {}
    for value in values:
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, TensorBase):
                if isinstance(item._key.runtime, RefusingRuntime):
                    return item._key.runtime.error(item._key.runtime.reason)
                devices[str(item._key.device)] = None
    found = " and ".join(devices)
    return RuntimeError(
        f"{op.name}: Expected all tensors to be on the same device, but found {found}; move one of "
        "them with .to(device)"
    )


def meta_results(op: Op, spec: Spec, raw: list[Any]) -> Any:
    """Return what a kernel would on the meta device: shapes and strides without data."""
    return results(op, spec, raw)
