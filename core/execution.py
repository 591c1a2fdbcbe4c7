"""From a spec to a kernel and back to tensors.

:func:`execute` is the way of every call that a rule has made a :class:`~.op.Spec` for; :func:`show` is the
short way of views.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .current import current
from .dtypes import DType
from .errors import KernelContractError
from .kinds import Kind
from .known import Known
from .op import Delegated, Op, Spec
from .runtime import RefusingRuntime
from .shapes import Shape
from .tensor_base import Storage, TensorBase, new_tensor, storage_of


def kernel_of(op: Op, kind: Kind) -> Callable[..., Any]:
    """Return the kernel for an op on a kind, as this thread's preferences have it."""
    if current.preferences:
        return current.preferred_kernel(op, kind)
    return kind.kernels[op.index]


def show(op: Op, input: Any, values: tuple[Any, ...], shape: Shape) -> Any:
    """Call a view op that keeps the dtype, with canonical arguments whose result has `shape`."""
    kind = input._kind
    if current.interposed:
        return current.through_layers(op, (input, *values), {})
    if kind.is_meta:
        return execute(op, op.function(input, *values))
    return _show(op, kind, input, values, shape)


def _show(op: Op, kind: Kind, input: Any, values: tuple[Any, ...], shape: Shape) -> Any:
    source = input
    if current.preferences:
        array = current.preferred_kernel(op, kind)(source._array, *values)
    else:
        array = kind.kernels[op.index](source._array, *values)
    if array.shape != shape:
        raise contract(op, kind, f"shape {list(array.shape)}", f"{list(shape)}")
    output = new_tensor(array, kind, shape)
    storage = source._storage
    if storage is None:
        storage = source._storage = Storage(source._writes)
    output._storage = storage
    current.gradient.record_view(op, (input, *values), output)
    return output


def execute(op: Op, spec: Spec) -> Any:
    """Call the kernel that a spec asks for; wrap and record what it returns."""
    if type(spec) is Delegated:
        return spec.result
    kind = spec.kind
    if op.view and not (current.verify or kind.is_meta):
        shape, dtype = spec.outputs[0]
        if dtype is kind.dtype and shape is not None:
            return _show(op, kind, spec.values[0], spec.values[1:], shape)
    raw, state = unwrap(op, spec.values, kind)
    if kind.is_meta:
        results = meta_results(op, spec, raw)
    else:
        results = call_kernel(op, kind, raw)
        if current.verify:
            verify(op, kind, results, spec.outputs)
    outputs = spec.outputs
    if len(outputs) == 1:
        shape, dtype = outputs[0]
        output = _wrap_checked(op, kind, results, shape, dtype)
        if op.view:
            output._storage = storage_of(spec.values[0])
            current.gradient.record_view(op, spec.values, output)
        elif state and (not current.paused or current.gradient.enabled()):
            current.gradient.record(op, spec.values, (output,))
        if current.paused:
            current.gradient.note_unrecorded(output)
        return output
    if len(results) != len(outputs):
        raise contract(op, kind, f"{len(results)} outputs", f"{len(outputs)}")
    wrapped = tuple(
        [
            _wrap_checked(op, kind, array, shape, dtype)
            for array, (shape, dtype) in zip(results, outputs, strict=True)
        ]
    )
    if state and (not current.paused or current.gradient.enabled()):
        current.gradient.record(op, spec.values, wrapped)
    if current.paused:
        for output in wrapped:
            current.gradient.note_unrecorded(output)
    named: Any = op.named
    return wrapped if named is None else named(*wrapped)


def call_kernel(op: Op, kind: Kind, raw: list[Any]) -> Any:
    """Call the kernel of an op, which may warn as it likes."""
    kernel = kernel_of(op, kind)
    try:
        return kernel(*raw)
    except Warning:  # where warnings are errors; what an array library warns of is none to tensors
        with kind.runtime.quiet():
            return kernel(*raw)
    except Exception as error:
        note_kernel(error, op, kind, raw)
        raise


def call_known(op: Op, known: Known, args: tuple[Any, ...]) -> Any:
    """Return what the kernel makes of a call like one that is known."""
    raw = known.raw.copy()
    if known.listed:
        raw[0] = [tensor._array for tensor in args[0]]
    else:
        for number, place in enumerate(known.places):
            tensor = args[known.positions[number]]
            raw[place] = tensor._array
    kind = known.kind
    try:
        return kind.kernels[op.index](*raw)
    except Warning:  # where warnings are errors
        return call_kernel(op, kind, raw)
    except Exception as error:
        note_kernel(error, op, kind, raw)
        raise


def note_kernel(error: Exception, op: Op, kind: Kind, raw: Any) -> None:
    """Note in an error whose kernel raised it."""
    from . import contracts

    contracts.note_kernel(error, op, kind, raw)


def unwrap(op: Op, values: tuple[Any, ...], kind: Kind) -> tuple[list[Any], int]:
    """Return the kernel's arguments, and whether any tensor among them may require grad.

    Raises
    ------
    RuntimeError
        If the tensors are on different devices.
    """
    raw: list[Any] = []
    state = 0
    device = kind.device
    numbers = op.pointwise
    for value in values:
        if isinstance(value, TensorBase):
            if value._kind is not kind and value._kind.device is not device:
                raise _devices_differ(op, values)
            state |= value._state
            raw.append(value._array)
        elif isinstance(value, (list, tuple)) and value and type(value[0]) is not int:
            arrays: list[Any] = []
            found = False
            for item in value:
                if isinstance(item, TensorBase):
                    if item._kind is not kind and item._kind.device is not device:
                        raise _devices_differ(op, values)
                    found = True
                    state |= item._state
                    arrays.append(item._array)
                else:
                    arrays.append(item)
            raw.append(arrays if found else kind.scalar(value) if numbers else value)
        else:
            raw.append(kind.scalar(value) if numbers else value)
    return raw, state


def _wrap_checked(op: Op, kind: Kind, array: Any, shape: Shape | None, dtype: DType) -> Any:
    result = kind if dtype is kind.dtype else kind.with_dtype(dtype)
    if type(array) is not result.array_type:
        array = result.as_array(array)
    if shape is None:
        shape = tuple(array.shape)
    elif array.shape != shape:
        raise contract(op, kind, f"shape {list(array.shape)}", f"{list(shape)}")
    return new_tensor(array, result, shape)


def contract(op: Op, kind: Kind, got: str, expected: str) -> KernelContractError:
    """Return the error for a kernel whose result is not what the op's declaration says."""
    from .contracts import violation

    return violation(op, kind, got, expected)


def verify(op: Op, kind: Kind, results: Any, outputs: Any) -> None:
    """Check what the first call of a kernel returned."""
    from . import contracts

    current.verify = contracts.every_call
    contracts.check_outputs(op, kind, results, outputs)


def overlaps(tensor: Any) -> bool:
    """Return whether elements of a tensor share memory, as those of an expanded one do."""
    runtime = tensor._kind.runtime
    if runtime.is_contiguous(tensor._array):
        return False
    strides = runtime.strides(tensor._array)
    if 0 not in strides:
        return False
    pairs = zip(tensor._shape, strides, strict=True)
    return any([size > 1 and not stride for size, stride in pairs])


def _devices_differ(op: Op, values: tuple[Any, ...]) -> Exception:
    devices: dict[str, None] = {}
    for value in values:
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, TensorBase):
                if isinstance(item._kind.runtime, RefusingRuntime):
                    return item._kind.runtime.error(item._kind.runtime.reason)
                devices[str(item._kind.device)] = None
    found = " and ".join(devices)
    return RuntimeError(
        f"{op.name}: expected all tensors to be on the same device, but found {found}; move one of "
        "them with .to(device)"
    )


def meta_results(op: Op, spec: Spec, raw: list[Any]) -> Any:
    """Return what a kernel would on the meta device: shapes and strides without data."""
    from .meta import results

    return results(op, spec, raw)
