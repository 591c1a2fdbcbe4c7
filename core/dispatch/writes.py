"""In-place variants: results that are written into the memory of an operand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..device.dtypes import FLOATING
from ..tensor.base import TRACKED, TensorBase, bump_version, new_tensor
from . import dispatcher, op_registry
from .arguments import Foreign, factor_of, fits, fits_rounded, plain_arguments
from .call_cache import store_call
from .composite_runs import any_tracked
from .execution import broadcast_error, kernel_of, native_kernel, overlaps, shares_elements, unwrap
from .interception import Intercepted, intercept
from .keys import DispatchKey
from .layers import note_opaque
from .op import Delegated, Op, Spec
from .out_dtypes import EXACT, OF_TARGET, check_out, check_own_dtype
from .overrides import overrides
from .queued_copies import queued_into
from .state import dispatch_state

#: By the name of an in-place variant, how it writes to a tensor of which several elements are one in memory,
#: as those of an expanded one are. All others refuse to.
EXPANDED: dict[str, Callable[..., Any]] = {}


def write(op: Op, spec: Spec, target: Any) -> None:
    """Compute a pointwise op into the memory of `target`, whose shape must be the result's."""
    key = spec.key
    raw, _ = unwrap(op, spec.values, key)
    if key.is_meta:
        bump_version(target)
        return
    kernel = kernel_of(op, key)
    result = key.with_dtype(spec.outputs[0][1])
    apart = target._storage is None or op is COPY or not shares_elements(target)
    # What writes at positions leaves the others alone, but for half precision, which is computed aside.
    if target._key is result and (
        apart or not (op.pointwise or op.elementwise or key.dtype.is_half)
    ):
        writer = None if dispatch_state.preferences else key.writers[op.index]
        if writer is not None:
            with key.runtime.quiet():
                writer(*raw, out=target._array)
            bump_version(target)
            return
    with key.runtime.quiet():
        array = kernel(*raw)
    if apart:
        store(target, array, result)
        bump_version(target)
    else:
        if type(array) is not result.array_type:
            array = result.as_array(array)
        _store_changed(target, new_tensor(array, result, target._shape))


def _store_changed(target: Any, result: Any) -> None:
    """Write a result into windows that share elements, where it is another than what they hold.

    What an op leaves as it is would else take back what it has just written to the same memory.
    """
    result = result.to(target._key.dtype)
    changed = result != target
    strides = target.stride()
    reach = 1 + sum([(n - 1) * step for n, step in zip(target._shape, strides, strict=True)])
    positions = changed.nonzero().unbind(1)
    places = sum([at * step for at, step in zip(positions, strides, strict=True)])
    target.as_strided((reach,), (1,))[places] = result[changed]


def store(target: Any, array: Any, key: DispatchKey) -> None:
    """Copy a kernel's result of `key` into the memory of `target`, converting the dtype."""
    own = target._key
    if type(array) is not key.array_type:
        array = key.as_array(array)
    if own is not key:
        array = key.kernels[CAST.index](array, own.dtype)
        if type(array) is not own.array_type:
            array = own.as_array(array)
    own.runtime.copy_into(target._array, array)


CAST = op_registry.handle("cast")


def inplace(op: Op, name: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the in-place variant of an op: compute it and write the result into `target`."""
    try:
        if dispatch_state.layers_active and dispatch_state.takes_over((target, *args), kwargs):
            try:
                given, options = plain_arguments(op, (target, *args), kwargs)
            except Foreign:  # which is asked first
                given, options = (target, *args), kwargs
            storage = target._storage if isinstance(target, TensorBase) else None
            if storage is not None and storage.mirror is not None and storage.mirror.live():
                note_opaque("a write that is carried over to conjugates")
            return dispatch_state.through_layers(_inplace_op(op, name), given, options)
        return run_inplace(op, name, target, args, kwargs)
    except Intercepted:
        return intercept(_inplace_op(op, name), (target, *args), kwargs)


def run_inplace(
    op: Op, name: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call the in-place variant of an op, below all active layers."""
    if not isinstance(target, TensorBase):
        if overrides(type(target)):
            return dispatch_state.through_layers(_inplace_op(op, name), (target, *args), kwargs)
        raise TypeError(f"{name}() writes into a tensor, got {type(target).__name__}")
    if kwargs:
        if len(kwargs) == 1 and _inplace_scaled(op, target, args, kwargs):
            return target
    elif op is COPY:
        if len(args) == 1 and _copied(target, args[0]):
            return target
    elif ((op.pointwise and not op.checked) or (op.elementwise and op.canonical is None)) and (
        _inplace_plain(op, target, args)
    ):
        return target
    storage = target._storage
    if storage is not None and storage.mirror is not None and not storage.mirror.busy:
        return _carried_over(op, name, target, args, kwargs)
    try:
        given, kwargs = plain_arguments(op, (target, *args), kwargs)
    except Foreign:
        return dispatch_state.through_layers(_inplace_op(op, name), (target, *args), kwargs)
    args = given[1:]
    if storage is not None and name in EXPANDED and overlaps(target):
        view = target._view
        # A gradient is no view of a whole tensor, and may be shared with others.
        if view is not None and not overlaps(view.base):
            return EXPANDED[name](target, *args, **kwargs)
    if op in OF_TARGET and not ("dtype" in kwargs or len(args) >= op.names.index("dtype")):
        kwargs = {**kwargs, "dtype": target._key.dtype}
    if op is COPY and (kwargs or len(args) > 1) and _copy_queued(target, args, kwargs):
        return target
    if kwargs and op.scaled is not None and len(args) == 1:
        factor = factor_of(op, target, args[0], kwargs)
        if factor is not None:
            scaled = op.scaled
            given = (target, args[0], factor)  # as its rule would return them
            if scaled.overridden and _inplace_by_kernel(scaled, target, given):
                return target
            return run_inplace(scaled, name, target, given[1:], {})
    if op.kind == "composite":
        if op.inplace_body is not None:
            result = op.inplace_body(target, *args, **kwargs)
            if result is not NotImplemented:
                return result
        if op.overridden:
            values = op.arguments((target, *args), kwargs)
            if type(values) is not Delegated and (
                (op.elementwise and values[0] is target and _inplace_plain(op, target, values[1:]))
                or _inplace_by_kernel(op, target, values)
            ):
                return target
        return _inplace_composite(op, name, target, args, kwargs)
    spec = op.function(target, *args, **kwargs)
    if type(spec) is Delegated:
        return _inplace_composite(op, name, target, args, kwargs)
    shape, dtype = spec.outputs[0]
    if shape != target._shape:
        raise broadcast_error(name, target._shape, shape or ())
    check_out(name, target, dtype, spec.key)
    if spec.values[0] is not target or spec.key.with_dtype(dtype) is not target._key:
        return _inplace_composite(op, name, target, args, kwargs)  # a promotion lies between
    recorded = dispatch_state.gradient.before_inplace(op, target, spec.values)
    storage = target._storage
    version = target._writes if storage is None else storage.version
    write(op, spec, target)
    if recorded is not None:
        dispatch_state.gradient.record_inplace(op, target, recorded, version)
    return target


def _carried_over(
    op: Op, name: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call an in-place variant, and carry what it wrote over to memory that shows the conjugate."""
    storage = target._storage
    mirror = storage.mirror
    mirror.begin()
    try:
        result = run_inplace(op, name, target, args, kwargs)
    finally:
        mirror.busy = False
    mirror.carry_over(storage)
    return result


def _copy_queued(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Begin a copy of a device's tensor into one of the host, if it need not be waited for."""
    _, src, non_blocking = COPY.bind((target, *args), kwargs)
    if not non_blocking:
        return False
    return not overlaps(target) and queued_into(target, src)


def _is_tracked_view(target: Any) -> bool:
    """Return whether a view, or the tensor that it shows, requires grad."""
    if target._view is None:
        return True
    gradient = dispatch_state.gradient
    return bool(gradient.requires_grad(target) or gradient.requires_grad(target._view.base))


def _inplace_scaled(op: Op, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Do what :func:`_inplace_plain` does for a call that names a factor, and nothing else."""
    factor: Any
    if op.scaled is not None:
        scaled = op.scaled
        if len(args) != 1 or not (scaled.overridden and scaled.elementwise):
            return False
        factor = factor_of(op, target, args[0], kwargs)
        return factor is not None and _inplace_plain(scaled, target, (args[0], factor))
    if not op.elementwise or op.leading != len(args) + 1 or op.arity != len(args) + 2:
        return False
    factor = kwargs.get(op.names[-1])
    # The rule leaves such numbers and tensors of one floating dtype as they are.
    if type(factor) not in (int, float) or not -60000 < factor < 60000:
        return False
    if target._key.dtype.category != FLOATING:
        return False
    for arg in args:
        if not isinstance(arg, TensorBase):
            return False
    return _inplace_plain(op, target, (*args, factor))


def _inplace_plain(op: Op, target: Any, args: tuple[Any, ...]) -> bool:
    """Write the op's result into `target` if that takes neither conversion nor recording.

    That is the common case of optimizers: tensors of one key and shape, and numbers.
    """
    return written(op, target, (target, *args))


def written(op: Op, target: Any, operands: tuple[Any, ...]) -> bool:
    """Write what an elementwise op gives of some operands into `target`, if nothing is to be found out first.

    The operands are tensors of the target's shape, or broadcast to it by a pointwise op, and numbers; the
    second of two may be of a dtype that the op converts to the first one's.
    """
    if not isinstance(operands[0], TensorBase):
        return False
    first = operands[0]
    key = first._key
    writer = key.writers[op.index]
    if (
        writer is None
        or len(operands) != op.arity
        or target._key is not (key.results[op.index] if op.pointwise else key)
        or (op.elementwise and dispatch_state.preferences)
    ):
        return False
    recorded = not dispatch_state.grad_disabled or dispatch_state.gradient.enabled()
    if not _is_free(target, recorded):
        return False
    raw = _raw_operands(op, target._shape, operands, key, recorded)
    if raw is None:
        return False
    if len(raw) == 2:
        _write_by(writer, target, raw[0], raw[1], None)
    else:
        _write_by(writer, target, None, None, raw)
    return True


def _raw_operands(
    op: Op, shape: Any, operands: tuple[Any, ...], key: DispatchKey, recorded: bool
) -> list[Any] | None:
    """Return what a writer gets for some operands; None if more than its call is to be done."""
    raw: list[Any] = []
    filled = False
    for arg in operands:
        if isinstance(arg, TensorBase):
            tensor = arg
            converted = tensor._key is not key
            if converted and not (raw and op.pointwise and _converts(op, operands[0], tensor)):
                return None
            if tensor._shape is shape or tensor._shape == shape:
                filled = True
            elif tensor._shape and not (op.pointwise and _fills(tensor._shape, shape)):
                return None
            if recorded and _is_recorded(tensor):
                return None
            raw.append(_converted(tensor, key) if converted else tensor._array)
        elif fits(arg, key.dtype) or (not op.scales and fits_rounded(arg, key.dtype)):
            try:
                raw.append(key.scalar(arg) if op.pointwise else arg)
            except (RuntimeError, OverflowError):
                return None  # the op's rule knows what becomes of it
        else:
            return None
    return raw if filled else None


def _is_recorded(tensor: Any) -> bool:
    """Return whether gradients are to reach a tensor."""
    return bool(
        tensor._state
        and (tensor._state == TRACKED or dispatch_state.gradient.requires_grad(tensor))
    )


def _write_by(writer: Any, target: Any, first: Any, second: Any, raw: list[Any] | None) -> None:
    """Have a kernel write into the memory of `target`, whatever it warns of, and count the write.

    It gets two arrays or numbers, as most do, or a list: a call with a list and a keyword costs more.
    """
    try:
        if raw is None:
            writer(first, second, out=target._array)
        else:
            writer(*raw, out=target._array)
    except Warning:
        with target._key.runtime.quiet():
            writer(*(raw or (first, second)), out=target._array)
    storage = target._storage
    if storage is None:
        target._writes += 1
    else:
        storage.version += 1


def _copied(target: Any, src: Any) -> bool:
    """Copy a tensor of the same device, or a number, into `target`, if nothing is to be recorded.

    Kernels of `copy` get both in one dtype, so that of a tensor of another one is converted first.
    """
    if not isinstance(src, TensorBase):
        return written(COPY, target, (target, src))
    tensor = src
    own = target._key
    key = tensor._key
    writer = own.writers[COPY.index]
    if (
        writer is None
        or key.device is not own.device
        or own.is_meta
        or own.intercepts
        or key.intercepts
    ):
        return False
    if dispatch_state.preferences or dispatch_state.verify:
        return False
    recorded = not dispatch_state.grad_disabled or dispatch_state.gradient.enabled()
    if not _is_free(target, recorded) or (recorded and _is_recorded(tensor)):
        return False
    if tensor._shape != target._shape and not _fills(tensor._shape, target._shape):
        return False
    array = tensor._array if key is own else _converted(tensor, own)
    _write_by(writer, target, target._array, array, None)
    return True


def _converts(op: Op, first: Any, second: Any) -> bool:
    """Return whether a pointwise op converts the second tensor to the dtype of the first, and no more."""
    if op.arity != 2 or op.promotions is None or first._key.is_meta:
        return False
    known: Any = op.promotions.calls
    # Of tensors without dimensions only the category of the dtype counts.
    key = ("converts", first._key, second._key, not first._shape, not second._shape)
    found = known.get(key)
    if found is None:
        try:
            spec = op.function(first, second)
        except Exception:  # raised again where it is said what is wrong
            return False
        found = (
            type(spec) is Spec
            and spec.key is first._key
            and spec.values[0] is first
            and isinstance(spec.values[1], TensorBase)
            and spec.values[1]._key is first._key
        )
        store_call(op.promotions, key, found)
    return bool(found)


def _converted(tensor: Any, key: DispatchKey) -> Any:
    """Return the array of a tensor in the dtype of another key."""
    array = tensor._key.kernels[CAST.index](tensor._array, key.dtype)
    return array if type(array) is key.array_type else key.as_array(array)


def _fills(sizes: Any, shape: Any) -> bool:
    """Return whether a shape is broadcast to another one."""
    count = len(sizes)
    before = len(shape) - count
    if before < 0:
        return False
    for dim in range(count):  # noqa: SIM110  in Python, a generator takes longer to make
        if sizes[dim] != 1 and sizes[dim] != shape[before + dim]:
            return False
    return True


def is_free(target: Any) -> bool:
    """Return whether a write into `target` changes its memory and counts, and nothing else is to be done."""
    return _is_free(target, not dispatch_state.grad_disabled or dispatch_state.gradient.enabled())


def _is_free(target: Any, recorded: bool) -> bool:
    if recorded and target._state and (target._state == TRACKED or _is_tracked_view(target)):
        return False
    storage = target._storage
    if storage is not None and (storage.mirror is not None or shares_elements(target)):
        return False  # to be carried over, or refused
    return target._extra is None or not target._extra.inference


def _inplace_by_kernel(op: Op, target: Any, values: tuple[Any, ...]) -> bool:
    """Have a composite's own kernel write into `target`, if there is one that can, and a derivative."""
    key = target._key
    if key.is_meta or op.derivative is None or len(op.outputs) != 1 or dispatch_state.preferences:
        return False
    if values[0] is not target:
        return False  # a conversion lies between
    for value in values[1:]:
        if isinstance(value, TensorBase) and not (
            op.elementwise and value._key is key and value._shape in (target._shape, ())
        ):
            return False  # of what shape and dtype the result is, only the body knows
    # The first call goes the other way, on which the kernel is found and held to the declaration.
    if not native_kernel(op, key) or key.writers[op.index] is None:
        return False
    if target._storage is not None and shares_elements(target):
        return False
    check_out(op.name, target, key.dtype, key)
    recorded = dispatch_state.gradient.before_inplace(op, target, values)
    storage = target._storage
    version = target._writes if storage is None else storage.version
    raw, _ = unwrap(op, values, key)
    with key.runtime.quiet():
        key.writers[op.index](*raw, out=target._array)
    bump_version(target)
    if recorded is not None:
        dispatch_state.gradient.record_inplace(op, target, recorded, version)
    return True


def _inplace_composite(
    op: Op, name: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Compute the composite aside, then copy it in, which records as an in-place copy."""
    operand = target
    if (not dispatch_state.grad_disabled or dispatch_state.gradient.enabled()) and any_tracked(
        (target, *args, *kwargs.values())
    ):
        # What the ops inside save has to outlast the write.
        operand = dispatcher.run(CLONE, (target,), {})
        args = tuple([operand if arg is target else arg for arg in args])
    result = dispatcher.run(op, (operand, *args), kwargs)
    if result._shape != target._shape:
        raise broadcast_error(name, target._shape, result._shape)
    if op in EXACT:
        if target._key.dtype.is_complex and not result._key.dtype.is_complex:
            raise RuntimeError(
                f"In-place {op.name} is not supported for complex tensors. Call {op.name}(): what it "
                "returns is real"
            )
        check_own_dtype(op, target._key.dtype, result._key.dtype, None)
    check_out(name, target, result._key.dtype, result._key)
    if (
        target._storage is not None
        and op is not COPY
        and shares_elements(target)
        and not any_tracked((target, result))
    ):
        _store_changed(target, result)
        return target
    return inplace(COPY, "copy_", target, (result,), {})


CLONE = op_registry.handle("clone")
COPY = op_registry.handle("copy")


def _inplace_op(op: Op, name: str) -> Op:
    """Return the op that layers see for an in-place call."""
    known = _inplace_ops.get((op, name))
    if known is None:
        known = Op(name)
        known.declared = True
        known.kind = "composite"
        known.parameters = op.parameters
        known.function = lambda target, *args, **kwargs: run_inplace(op, name, target, args, kwargs)
        known.call = dispatch_state.build_inplace(op, name)
        known.owner = op.owner
        known.inplace_of = op
        known.random = op.random
        _inplace_ops[op, name] = known
    return known


#: The op that layers see for each in-place variant: `copy_` and `fill_` are two of one op.
_inplace_ops: dict[tuple[Op, str], Op] = {}
