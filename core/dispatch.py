"""The dispatcher: from an op and its arguments to a kernel and back to tensors.

:func:`make_unary` and :func:`make_binary` are the hot path: pointwise ops whose arguments need neither
conversion nor checks. Everything else goes through :func:`general`: the declared rule makes a
:class:`~tensorplug.core.operators.Spec`, :func:`execute` calls the kernel with it.

What interposes on calls (autograd, autocast, tracing, profiling) is a layer, see :mod:`.layers`. The
gradient layer is reached directly where an input requires grad; any other makes ``interposed`` nonzero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

from . import operators
from .dtypes import BOOL, COMPLEX, FLOATING, INTEGER, DType, can_cast
from .errors import DeviceNotAvailableError, KernelContractError
from .kinds import Kind
from .operators import Op, Spec
from .runtime import RemovedRuntime
from .shapes import Shape
from .tensor_base import (
    TRACKED,
    TensorBase,
    bump_version,
    new_tensor,
    storage_of,
    wrap,
)


class GradientLayer(Protocol):
    """What core asks of the package that records operations for differentiation."""

    def enabled(self) -> bool:
        """Return whether this thread records; asked only while some thread does not."""
        ...

    def record_unary(self, op: Op, output: Any, input: Any) -> None:
        """Record a pointwise op of one argument."""

    def record_binary(
        self, op: Op, output: Any, input: Any, other: Any, left: int, right: int, broadcast: bool
    ) -> None:
        """Record a pointwise op of two arguments, one of which may be a number.

        `left` and `right` are the arguments' ``_state``, 0 for a number; `broadcast` tells whether
        two tensors have different shapes.
        """

    def record(self, op: Op, values: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
        """Record any other op."""

    def note_unrecorded(self, output: Any) -> None:
        """Mark what was made in inference mode; called while some thread does not record."""

    def record_view(self, op: Op, values: tuple[Any, ...], output: Any) -> None:
        """Note that `output` is a view of ``values[0]``, whether or not that requires grad."""

    def before_inplace(
        self, op: Op, target: Any, values: tuple[Any, ...]
    ) -> tuple[Any, ...] | None:
        """Refuse what may not be written to; return the values to record with, None to record nothing."""

    def record_inplace(self, op: Op, target: Any, values: tuple[Any, ...], version: int) -> None:
        """Record that `target`, at `version` before, now holds the op's result."""

    def relayout(self, name: str, target: Any, show: Callable[[Any], Any]) -> None:
        """Turn a tensor into the view of itself that `show` makes, for the op called `name`."""

    def requires_grad(self, tensor: Any) -> bool:
        """Return whether a view of a tensor that required no grad does so by now."""
        ...

    def set_requires_grad(self, tensor: Any, value: bool) -> None:
        """Make a leaf require grad or not."""

    def grad_fn(self, tensor: Any) -> Any:
        """Return the node that made the tensor, or None."""

    def backward(
        self, tensor: Any, gradient: Any, retain_graph: Any, create_graph: bool, inputs: Any
    ) -> None:
        """Run the backward pass from a tensor."""

    def retain_grad(self, tensor: Any) -> None:
        """Keep the gradient of a non-leaf."""

    def register_hook(self, tensor: Any, hook: Callable[..., Any]) -> Any:
        """Call `hook` with the tensor's gradient."""

    def register_post_accumulate_grad_hook(self, tensor: Any, hook: Callable[..., Any]) -> Any:
        """Call `hook` after a leaf's gradient was accumulated."""

    def detach_(self, tensor: Any) -> None:
        """Take the tensor out of its graph."""


class _NoGradient:
    """Stands in while no autograd package is loaded: nothing is recorded."""

    def enabled(self) -> bool:
        return False

    def record_unary(self, op: Op, output: Any, input: Any) -> None: ...

    def record_binary(
        self, op: Op, output: Any, input: Any, other: Any, left: int, right: int, broadcast: bool
    ) -> None: ...

    def record(self, op: Op, values: tuple[Any, ...], outputs: tuple[Any, ...]) -> None: ...

    def note_unrecorded(self, output: Any) -> None: ...

    def record_view(self, op: Op, values: tuple[Any, ...], output: Any) -> None: ...

    def before_inplace(
        self, op: Op, target: Any, values: tuple[Any, ...]
    ) -> tuple[Any, ...] | None:
        return None

    def record_inplace(
        self, op: Op, target: Any, values: tuple[Any, ...], version: int
    ) -> None: ...

    def relayout(self, name: str, target: Any, show: Callable[[Any], Any]) -> None:
        result = show(target)
        target._array, target._shape = result._array, result._shape

    def requires_grad(self, tensor: Any) -> bool:
        return False

    def grad_fn(self, tensor: Any) -> None:
        return None

    def detach_(self, tensor: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"{name} needs the autograd package: import tensorplug.autograd")


# What _NoGradient does not say, it answers with an error.
gradient: GradientLayer = cast(Any, _NoGradient())

# How many contexts, over all threads, forbid recording (no_grad blocks) or interpose on calls (layers,
# preferred backends). While they are zero, no thread-local state is looked at.
paused = 0
interposed = 0

# How many contexts prefer a backend; each counts as interposed too.
preferences = 0

# Set by .layers: runs a call through this thread's layers.
through_layers: Callable[[Op, tuple[Any, ...], dict[str, Any]], Any]


def set_gradient_layer(layer: GradientLayer) -> None:
    """Make `layer` the one that ops on tensors that require grad go through."""
    global gradient
    gradient = layer


def add_paused(change: int) -> None:
    """Count a context that forbids recording in (1) or out (-1)."""
    global paused
    paused += change


def add_interposed(change: int) -> None:
    """Count a context that interposes on calls in (1) or out (-1)."""
    global interposed
    interposed += change


def add_preferences(change: int) -> None:
    """Count a context that prefers a backend in (1) or out (-1)."""
    global preferences
    preferences += change
    add_interposed(change)


# Whether the next kernel's result is checked in full: after a kernel's first call, or always.
verify = False


def set_verify(on: bool) -> None:
    """Have the next result checked against the op's declaration, see :mod:`.contracts`."""
    global verify
    verify = on


def kernel_of(op: Op, kind: Kind) -> Callable[..., Any]:
    """Return the kernel for an op on a kind, as this thread's preferences have it."""
    if preferences:
        return preferred_kernel(op, kind)
    return kind.kernels[op.index]


# --- hot path ---------------------------------------------------------------------------------
# One closure per op, and the result's slots set here rather than in new_tensor: a Python call costs
# about as much as all of the checks together.

_new = object.__new__
# Tensor, set by its module: isinstance is fastest for the class that most objects are of.
tensor_class: type[Any] = TensorBase


def make_unary(op: Op) -> Callable[[Any], Any]:
    """Return the callable of a pointwise op of one tensor."""

    def unary(input: Any) -> Any:
        if interposed or not isinstance(input, tensor_class):
            return general(op, (input,), {})
        kind = input._kind
        index = op.index
        try:
            array = kind.kernels[index](input._array)
        except Exception as error:
            return _again(op, (input,), error)
        result: Any = kind.results[index]
        shape = input._shape
        if not shape and type(array) is not result.array_type:  # only 0-d results become scalars
            array = result.as_array(array)
        output = _new(tensor_class)
        output._array = array
        output._kind = result
        output._shape = shape
        output._state = 0
        output._node = None
        output._writes = 0
        output._storage = None
        output._extra = None
        if input._state and (not paused or gradient.enabled()):
            gradient.record_unary(op, output, input)
        if paused:
            gradient.note_unrecorded(output)
        return output

    return unary


def make_binary(op: Op, operator: bool = False) -> Callable[[Any, Any], Any]:
    """Return the callable of a pointwise op of two tensors, or of a tensor and a number.

    As a Python `operator` it leaves operands that it does not know to their own class.
    """

    def binary(input: Any, other: Any) -> Any:
        if interposed:
            return unusual(op, input, other, operator)
        if isinstance(input, tensor_class):
            kind = input._kind
            shape: Any = input._shape
            array = input._array
            left = input._state
            right = 0
            if isinstance(other, tensor_class):
                if other._kind is not kind:
                    return unusual(op, input, other, operator)
                operand = other._array
                right = other._state
                if other._shape != shape:
                    shape = None
            elif fits(other, kind.dtype):
                operand = kind.scalar(other)
            else:
                return unusual(op, input, other, operator)
        elif isinstance(other, tensor_class) and fits(input, other._kind.dtype):
            kind = other._kind
            shape = other._shape
            array = kind.scalar(input)
            operand = other._array
            left = 0
            right = other._state
        else:
            return unusual(op, input, other, operator)
        index = op.index
        try:
            array = kind.kernels[index](array, operand)
        except Exception as error:
            return _again(op, (input, other), error)
        result: Any = kind.results[index]
        if not shape and type(array) is not result.array_type:
            array = result.as_array(array)
        output = _new(tensor_class)
        output._array = array
        output._kind = result
        output._shape = array.shape if shape is None else shape
        output._state = 0
        output._node = None
        output._writes = 0
        output._storage = None
        output._extra = None
        if (left or right) and (not paused or gradient.enabled()):
            gradient.record_binary(op, output, input, other, left, right, shape is None)
        if paused:
            gradient.note_unrecorded(output)
        return output

    return binary


def unusual(op: Op, input: Any, other: Any, operator: bool) -> Any:
    """Call a binary op whose operands are not of one kind."""
    if operator:
        if not is_operand(other):
            return NotImplemented
        other = as_operand(other)
    return general(op, (input, other), {})


_NUMBERS = (int, float, complex)  # bool is an int


def is_operand(value: Any) -> bool:
    """Return whether an operator accepts `value` beside a tensor; a NumPy scalar is a number."""
    return isinstance(value, (TensorBase, *_NUMBERS)) or (
        hasattr(value, "dtype") and hasattr(value, "item") and getattr(value, "shape", None) == ()
    )


def as_operand(value: Any) -> Any:
    """Return a tensor or Python number for a value that :func:`is_operand` accepts."""
    return value if isinstance(value, (TensorBase, *_NUMBERS)) else value.item()


def fits(value: Any, dtype: DType) -> bool:
    """Return whether a Python number leaves the dtype of a tensor beside it as it is."""
    type_ = type(value)
    if type_ is float:
        return dtype.category >= FLOATING
    if type_ is int:
        return dtype.category >= INTEGER
    if type_ is bool:
        return dtype.category >= BOOL
    return type_ is complex and dtype.category == COMPLEX


class NeedsRule(Exception):
    """Raised by a kernel on the hot path to have the call go through the op's rule."""


def _again(op: Op, args: tuple[Any, ...], error: Exception) -> Any:
    """Find out why a kernel failed: the rule raises for bad arguments, a strict warning is muted."""
    spec = op.function(*args)
    if isinstance(error, NeedsRule):
        return execute(op, spec)
    if isinstance(error, Warning):
        with spec.kind.runtime.quiet():
            return execute(op, spec)
    try:
        raise error
    finally:
        del error  # its traceback has this frame: a cycle would keep the tensors


def show(op: Op, input: Any, values: tuple[Any, ...], shape: Shape) -> Any:
    """Call a view op that keeps the dtype, with canonical arguments whose result has `shape`."""
    kind = input._kind
    if interposed or kind.is_meta:
        return general(op, (input, *values), {})
    return _show(op, kind, input, values, shape)


def _show(op: Op, kind: Kind, input: Any, values: tuple[Any, ...], shape: Shape) -> Any:
    array = kernel_of(op, kind)(input._array, *values)
    if array.shape != shape:
        raise _contract(op, kind, f"shape {list(array.shape)}", f"{list(shape)}")
    output = new_tensor(array, kind, shape)
    output._storage = storage_of(input)
    gradient.record_view(op, (input, *values), output)
    return output


# --- every other call -------------------------------------------------------------------------


def general(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call any op with any arguments."""
    if interposed:
        return through_layers(op, args, kwargs)
    return run(op, args, kwargs)


def run(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call any op, below all interposed layers."""
    if "out" in kwargs:
        kwargs = dict(kwargs)
        out = kwargs.pop("out")
        if out is not None:
            return _run_out(op, args, kwargs, out)
    if op.sort == "primitive":
        return execute(op, op.function(*args, **kwargs))
    if op.overridden:
        return _run_overridden(op, args, kwargs)
    return op.function(*args, **kwargs)


def execute(op: Op, spec: Spec) -> Any:
    """Call the kernel that a spec asks for; wrap and record what it returns."""
    kind = spec.kind
    if op.view and not (verify or kind.is_meta):
        shape, dtype = spec.outputs[0]
        if dtype is kind.dtype and shape is not None:
            return _show(op, kind, spec.values[0], spec.values[1:], shape)
    raw, state = unwrap(op, spec.values, kind)
    if kind.is_meta:
        results = meta_results(op, spec, raw)
    else:
        results = _call_kernel(op, kind, raw)
        if verify:
            _verify(op, kind, results, spec.outputs)
    outputs = spec.outputs
    if len(outputs) == 1:
        output = _wrap_checked(op, kind, results, *outputs[0])
        if op.view:
            output._storage = storage_of(spec.values[0])
            gradient.record_view(op, spec.values, output)
        elif state and (not paused or gradient.enabled()):
            gradient.record(op, spec.values, (output,))
        if paused:
            gradient.note_unrecorded(output)
        return output
    if len(results) != len(outputs):
        raise _contract(op, kind, f"{len(results)} outputs", f"{len(outputs)}")
    wrapped = tuple(
        [
            _wrap_checked(op, kind, array, shape, dtype)
            for array, (shape, dtype) in zip(results, outputs, strict=True)
        ]
    )
    if state and (not paused or gradient.enabled()):
        gradient.record(op, spec.values, wrapped)
    if paused:
        for output in wrapped:
            gradient.note_unrecorded(output)
    return wrapped


def _call_kernel(op: Op, kind: Kind, raw: list[Any]) -> Any:
    kernel = kernel_of(op, kind)
    try:
        return kernel(*raw)
    except Warning:  # where warnings are errors; what an array library warns of is none to tensors
        with kind.runtime.quiet():
            return kernel(*raw)


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
        if isinstance(value, tensor_class):
            if value._kind is not kind and value._kind.device is not device:
                raise _devices_differ(op, values)
            state |= value._state
            raw.append(value._array)
        elif (
            isinstance(value, (list, tuple))
            and value
            and type(value[0]) is not int
            and any([isinstance(item, TensorBase) for item in value])
        ):
            arrays, inner = unwrap(op, tuple(value), kind)
            state |= inner
            raw.append(arrays)
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
        raise _contract(op, kind, f"shape {list(array.shape)}", f"{list(shape)}")
    return new_tensor(array, result, shape)


def _contract(op: Op, kind: Kind, got: str, expected: str) -> KernelContractError:
    from .contracts import violation

    return violation(op, kind, got, expected)


def _verify(op: Op, kind: Kind, results: Any, outputs: Any) -> None:
    from . import contracts

    set_verify(contracts.every_call)
    contracts.check_outputs(op, kind, results, outputs)


def _verify_composite(
    op: Op, kind: Kind, results: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    from . import contracts

    set_verify(contracts.every_call)
    contracts.check_composite(op, kind, results, args, kwargs)


def _devices_differ(op: Op, values: tuple[Any, ...]) -> RuntimeError:
    devices: dict[str, None] = {}
    for value in values:
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, TensorBase):
                if isinstance(item._kind.runtime, RemovedRuntime):
                    return DeviceNotAvailableError(item._kind.runtime.reason)
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


# --- composites with a kernel or derivative of their own ---------------------------------------


def _run_overridden(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if type(op.index) is not int:
        op.index.__index__()  # loads the extension that registers the op
    values = op.bind(args, kwargs)
    first = operators.first_tensor(values)
    if first is None:
        return op.function(*args, **kwargs)
    kind = first._kind
    tracked = (not paused or gradient.enabled()) and _any_tracked(values)
    if tracked and op.rule is None:
        return op.function(*args, **kwargs)
    if not tracked:
        return _run_kernel_or_body(op, values, kind, args, kwargs)
    with gradient_off():
        results = _run_kernel_or_body(op, values, kind, args, kwargs)
    gradient.record(op, values, results if isinstance(results, tuple) else (results,))
    return results


def _run_kernel_or_body(
    op: Op, values: tuple[Any, ...], kind: Kind, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    if kind.is_meta or not native_kernel(op, kind) or not _same_kind(values, kind):
        return op.function(*args, **kwargs)
    if op.writes:
        return _run_writing(op, values, kind)
    raw, _ = unwrap(op, values, kind)
    results = _call_kernel(op, kind, raw)
    if verify:
        _verify_composite(op, kind, results, args, kwargs)
    runtime = kind.runtime
    if len(op.outputs) == 1:
        results = kind.as_array(results) if type(results) is not kind.array_type else results
        return wrap(results, kind.with_dtype(runtime.dtype(results)))
    arrays = [a if type(a) is kind.array_type else kind.as_array(a) for a in results]
    return tuple([wrap(array, kind.with_dtype(runtime.dtype(array))) for array in arrays])


def _run_writing(op: Op, values: tuple[Any, ...], kind: Kind) -> None:
    """Call the kernel of a composite that changes its arguments."""
    targets: list[Any] = []
    for place in op.writes:
        value = values[place]
        targets += value if isinstance(value, (list, tuple)) else [value]
    for target in targets:
        gradient.before_inplace(op, target, ())
        if _overlaps(target):
            raise RuntimeError(
                f"{op.name}(): more than one element of a written-to tensor of shape "
                f"{list(target._shape)} refers to a single memory location; clone() it first"
            )
    raw, _ = unwrap(op, values, kind)
    with kind.runtime.quiet():  # once: what is written half cannot be tried again
        kernel_of(op, kind)(*raw)
    for target in targets:
        bump_version(target)


def _any_tracked(values: tuple[Any, ...]) -> bool:
    for value in values:
        if isinstance(value, TensorBase):
            # A view has to ask: it requires grad if its base has come to by now.
            state = value._state
            if state and (state == TRACKED or gradient.requires_grad(value)):
                return True
        elif isinstance(value, (list, tuple)) and _any_tracked(tuple(value)):
            return True
    return False


def _same_kind(values: tuple[Any, ...], kind: Kind) -> bool:
    """Return whether all floating-point tensors are of one dtype, and all tensors of one device."""
    for value in values:
        if isinstance(value, TensorBase):
            other = value._kind
            if other is not kind and (
                other.device is not kind.device or other.dtype.category >= FLOATING
            ):
                return False
        elif isinstance(value, (list, tuple)) and not _same_kind(tuple(value), kind):
            return False
    return True


# Set by .resolution and by .layers.
preferred_kernel: Callable[[Op, Kind], Callable[..., Any]]
native_kernel: Callable[[Op, Kind], bool]
gradient_off: Callable[[], Any]


# --- out= and in-place ------------------------------------------------------------------------


def _run_out(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
    targets = out if isinstance(out, (tuple, list)) else (out,)
    for target in targets:
        if not isinstance(target, TensorBase):
            raise TypeError(f"{op.name}(): out= takes a tensor, got {type(target).__name__}")
    if (_any_tracked((args, tuple(kwargs.values()))) or _any_tracked((targets,))) and (
        not paused or gradient.enabled()
    ):
        raise RuntimeError(
            f"{op.name}(): functions with out=... arguments don't support automatic "
            "differentiation, but one of the arguments requires grad"
        )
    if op.pointwise and len(targets) == 1:
        spec = op.function(*args, **kwargs)
        _check_out(op.name, targets[0], spec.outputs[0][1], spec.kind)
        if targets[0]._shape == spec.outputs[0][0]:
            write(op, spec, targets[0])
            return out
        results = execute(op, spec)
    else:
        results = run(op, args, kwargs)
    computed = results if isinstance(results, tuple) else (results,)
    if len(computed) != len(targets):
        raise TypeError(f"{op.name}(): out= takes {len(computed)} tensors, got {len(targets)}")
    for target, result in zip(targets, computed, strict=True):
        _check_out(op.name, target, result._kind.dtype, result._kind)
    for target, result in zip(targets, computed, strict=True):
        if target._shape != result._shape:
            resize_out(op, target, result._shape)
        store(target, result._array, result._kind)
        bump_version(target)
    # A named tuple names the tensors that were given.
    named: Any = type(results)
    return named._make(targets) if hasattr(named, "_make") else out


def _check_out(name: str, target: Any, dtype: DType, kind: Kind) -> None:
    """Refuse to write a result of some dtype and kind into a tensor that can't take it."""
    if target._kind.device is not kind.device:
        raise RuntimeError(
            f"{name}(): expected out= on {kind.device}, got a tensor on {target._kind.device}"
        )
    if not can_cast(dtype, target._kind.dtype):
        raise RuntimeError(
            f"{name}(): result type {dtype.name} can't be cast to the desired output type "
            f"{target._kind.dtype.name}"
        )
    if target._storage is not None and _overlaps(target):
        raise RuntimeError(
            f"{name}(): unsupported operation: more than one element of the written-to tensor refers "
            "to a single memory location. Please clone() the tensor before performing the operation."
        )


def resize_out(op: Op, target: Any, shape: Shape) -> None:
    """Give an ``out=`` tensor of another shape new memory, as torch does.

    A tensor that has elements gets a warning, because its old memory is left behind.
    """
    import math
    import warnings

    if math.prod(target._shape):
        warnings.warn(
            f"{op.name}(): an output with shape {list(target._shape)} was resized to "
            f"{list(shape)}; pass an empty tensor, or one of that shape",
            UserWarning,
            stacklevel=5,
        )
    kind = target._kind
    target._array = kind.runtime.empty(shape, kind.dtype, kind.device.index or 0)
    target._shape = shape
    target._storage = None


def write(op: Op, spec: Spec, target: Any) -> None:
    """Compute a pointwise op into the memory of `target`, whose shape must be the result's."""
    kind = spec.kind
    raw, _ = unwrap(op, spec.values, kind)
    if kind.is_meta:
        bump_version(target)
        return
    kernel = kernel_of(op, kind)
    result = kind.with_dtype(spec.outputs[0][1])
    if target._kind is result:
        writer = None if preferences else kind.writers[op.index]
        if writer is not None:
            with kind.runtime.quiet():
                writer(*raw, out=target._array)
            bump_version(target)
            return
    with kind.runtime.quiet():
        array = kernel(*raw)
    store(target, array, result)
    bump_version(target)


def store(target: Any, array: Any, kind: Kind) -> None:
    """Copy a kernel's result of `kind` into the memory of `target`, converting the dtype."""
    own = target._kind
    if type(array) is not kind.array_type:
        array = kind.as_array(array)
    if own is not kind:
        array = kind.kernels[CAST.index](array, own.dtype)
        if type(array) is not own.array_type:
            array = own.as_array(array)
    own.runtime.copy_into(target._array, array)


CAST = operators.handle("cast")


def inplace(op: Op, name: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the in-place variant of an op: compute it and write the result into `target`."""
    if interposed:
        return through_layers(_inplace_op(op, name), (target, *args), kwargs)
    return run_inplace(op, name, target, args, kwargs)


def run_inplace(
    op: Op, name: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call the in-place variant of an op, below all interposed layers."""
    if not isinstance(target, TensorBase):
        raise TypeError(f"{name}() writes into a tensor, got {type(target).__name__}")
    if not kwargs and op.pointwise and _inplace_plain(op, target, args):
        return target
    if op.sort == "composite":
        if op.inplace_body is not None:
            return op.inplace_body(target, *args, **kwargs)
        return _inplace_composite(op, name, target, args, kwargs)
    spec = op.function(target, *args, **kwargs)
    shape, dtype = spec.outputs[0]
    if shape != target._shape:
        raise RuntimeError(
            f"{name}(): output with shape {list(target._shape)} doesn't match the broadcast shape "
            f"{list(shape or ())}"
        )
    _check_out(name, target, dtype, spec.kind)
    if spec.values[0] is not target or spec.kind.with_dtype(dtype) is not target._kind:
        return _inplace_composite(op, name, target, args, kwargs)  # a promotion lies between
    recorded = gradient.before_inplace(op, target, spec.values)
    storage = target._storage
    version = target._writes if storage is None else storage.version
    write(op, spec, target)
    if recorded is not None:
        gradient.record_inplace(op, target, recorded, version)
    return target


def _inplace_plain(op: Op, target: Any, args: tuple[Any, ...]) -> bool:
    """Write the op's result into `target` if that takes neither conversion nor recording.

    That is the common case of optimizers: tensors of one kind and shape, and numbers.
    """
    kind = target._kind
    index = op.index
    writer = kind.writers[index]
    if writer is None or target._state or kind.results[index] is not kind:
        return False
    storage = target._storage
    if storage is not None and _overlaps(target):
        return False  # to be refused
    if target._extra is not None and target._extra.inference:
        return False
    raw = [target._array]
    shape = target._shape
    for arg in args:
        if isinstance(arg, tensor_class):
            if arg._kind is not kind or arg._state or (arg._shape and arg._shape != shape):
                return False
            raw.append(arg._array)
        elif fits(arg, kind.dtype):
            raw.append(kind.scalar(arg))
        else:
            return False
    if len(raw) != op.arity:
        return False
    try:
        writer(*raw, out=target._array)
    except Warning:
        with kind.runtime.quiet():
            writer(*raw, out=target._array)
    if storage is None:
        target._writes += 1
    else:
        storage.version += 1
    return True


def _overlaps(tensor: Any) -> bool:
    """Return whether elements of a tensor share memory, as those of an expanded one do."""
    strides = tensor._kind.runtime.strides(tensor._array)
    if 0 not in strides:
        return False
    pairs = zip(tensor._shape, strides, strict=True)
    return any([size > 1 and not stride for size, stride in pairs])


def _inplace_composite(
    op: Op, name: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Compute the composite aside, then copy it in, which records as an in-place copy."""
    operand = target
    if target._state and gradient.requires_grad(target) and (not paused or gradient.enabled()):
        # What the ops inside save has to outlast the write.
        operand = run(CLONE, (target,), {})
        args = tuple([operand if arg is target else arg for arg in args])
    result = run(op, (operand, *args), kwargs)
    if result._shape != target._shape:
        raise RuntimeError(
            f"{name}(): output with shape {list(target._shape)} doesn't match the broadcast shape "
            f"{list(result._shape)}"
        )
    _check_out(name, target, result._kind.dtype, result._kind)
    return inplace(COPY, "copy_", target, (result,), {})


CLONE = operators.handle("clone")
COPY = operators.handle("copy")


def _inplace_op(op: Op, name: str) -> Op:
    """Return the op that layers see for an in-place call."""
    known = _INPLACE_OPS.get(op)
    if known is None:
        known = Op(name)
        known.declared = True
        known.sort = "composite"
        known.parameters = op.parameters
        known.function = lambda target, *args, **kwargs: run_inplace(op, name, target, args, kwargs)
        known.owner = op.owner
        _INPLACE_OPS[op] = known
    return known


_INPLACE_OPS: dict[Op, Op] = {}


# --- what users call ---------------------------------------------------------------------------


def _build_call(op: Op) -> Callable[..., Any]:
    """Return the callable of an op, of the arity that suits it."""
    if op.pointwise and op.arity == 1:
        unary = make_unary(op)

        def call_unary(input: Any, **options: Any) -> Any:
            if options:
                return general(op, (input,), options)
            return unary(input)

        return call_unary

    if op.pointwise and op.arity == 2:
        binary = make_binary(op)

        def call_binary(input: Any, other: Any, **options: Any) -> Any:
            if options:
                return general(op, (input, other), options)
            return binary(input, other)

        return call_binary

    # NumPy's names of two arguments, which torch takes as well.
    parameters = op.names
    renamed = {
        theirs: ours
        for theirs, ours in (("axis", "dim"), ("keepdims", "keepdim"))
        if ours in parameters and theirs not in parameters
    }

    if op.sort == "composite":

        def call_composite(*args: Any, **kwargs: Any) -> Any:
            if kwargs and renamed and not renamed.keys().isdisjoint(kwargs):
                kwargs = {renamed.get(name, name): value for name, value in kwargs.items()}
            if interposed or op.overridden or "out" in kwargs:
                return general(op, args, kwargs)
            return op.function(*args, **kwargs)

        return call_composite

    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs and renamed and not renamed.keys().isdisjoint(kwargs):
            kwargs = {renamed.get(name, name): value for name, value in kwargs.items()}
        if interposed or "out" in kwargs:
            return general(op, args, kwargs)
        try:
            key: Any = tuple(
                [
                    (arg._kind, arg._shape)
                    if isinstance(arg, tensor_class)
                    else (arg.__class__, arg)
                    for arg in args
                ]
            )
            if kwargs:
                key = (key, *[(name, arg.__class__, arg) for name, arg in kwargs.items()])
            known = specs.get(key)
        except TypeError:  # an argument that cannot be a key, such as a list
            return execute(op, op.function(*args, **kwargs))
        if known is not None:
            template, places, kind, outputs = known
            values = list(template)
            for place, position in places:
                values[place] = args[position]
            spec = _new(Spec)
            spec.values = tuple(values)
            spec.kind = kind
            spec.outputs = outputs
            return execute(op, spec)
        spec = op.function(*args, **kwargs)
        _remember(specs, key, args, kwargs, spec)
        return execute(op, spec)

    if op.view:  # whether memory can be shown in a shape depends on more than shapes

        def call_view(*args: Any, **kwargs: Any) -> Any:
            if kwargs and renamed and not renamed.keys().isdisjoint(kwargs):
                kwargs = {renamed.get(name, name): value for name, value in kwargs.items()}
            if interposed or "out" in kwargs:
                return general(op, args, kwargs)
            return execute(op, op.function(*args, **kwargs))

        return call_view

    specs: dict[Any, Any] = {}
    _SPECS.append(specs)
    return call


# What rules came to, by op: a rule sees kinds, shapes and plain values only, so for the same ones its spec is
# the same but for the tensors in it.
_SPECS: list[dict[Any, Any]] = []
_SPECS_KEPT = 512


def forget_specs() -> None:
    """Forget what rules came to; a default that they depend on has changed."""
    for specs in _SPECS:
        specs.clear()


def _remember(
    specs: dict[Any, Any], key: Any, args: tuple[Any, ...], kwargs: dict[str, Any], spec: Spec
) -> None:
    """Keep a spec whose tensors are the call's own arguments, each of them."""
    if any([isinstance(arg, (float, complex)) and not arg for arg in (*args, *kwargs.values())]):
        return  # as keys 0.0 and -0.0 are one
    tensors = [position for position, arg in enumerate(args) if isinstance(arg, TensorBase)]
    given = {id(args[position]): position for position in tensors}
    if not given or any([isinstance(arg, TensorBase) for arg in kwargs.values()]):
        return
    if len(given) != len(tensors):  # one tensor twice: which is which cannot be told
        return
    if len(given) < len([arg for arg in args if isinstance(arg, TensorBase)]):
        return  # one tensor given twice does not tell which place of the spec is which argument's
    places = []
    for place, value in enumerate(spec.values):
        if isinstance(value, TensorBase):
            position = given.get(id(value))
            if position is None:  # a tensor that the rule made, by a conversion say
                return
            places.append((place, position))
        elif isinstance(value, (list, tuple)) and operators.first_tensor(value) is not None:
            return
    if {position for _, position in places} != set(given.values()) or spec.kind.is_meta:
        return  # the rule read a tensor's value
    if len(specs) >= _SPECS_KEPT:
        specs.clear()
    template = [None if isinstance(value, TensorBase) else value for value in spec.values]
    specs[key] = (template, tuple(places), spec.kind, spec.outputs)


def _build_inplace(op: Op, name: str) -> Callable[..., Any]:
    def call_inplace(self: Any, *args: Any, **kwargs: Any) -> Any:
        return inplace(op, name, self, args, kwargs)

    call_inplace.__name__ = call_inplace.__qualname__ = name
    call_inplace.__doc__ = f"In-place version of :func:`tensorplug.{op.name}`; returns the tensor."
    return call_inplace


operators.build_call = _build_call
operators.build_inplace = _build_inplace
