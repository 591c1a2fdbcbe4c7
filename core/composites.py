"""Composites with a kernel or a derivative of their own, which stand in for the body."""

from __future__ import annotations

from typing import Any

from .current import current
from .dtypes import FLOATING
from .execution import call_kernel, call_known, kernel_of, overlaps, unwrap
from .kinds import Kind
from .known import Known, Memory, keep, key_of, remember, zeros
from .op import Delegated, Op, Spec, first_tensor
from .tensor_base import TRACKED, TensorBase, bump_version, new_tensor, wrap


def call_overridden(op: Op, memory: Memory, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call such a composite, by what is known of calls like this one."""
    if not op.cacheable:
        return run_overridden(op, args, kwargs)
    if args and type(args[0]) is list:
        return _call_of_list(op, memory, args, kwargs)
    key = key_of(args, kwargs)
    try:
        known = memory.known.get(key)
    except TypeError:  # an argument that cannot be a key, such as a list
        return run_overridden(op, args, kwargs)
    if known is None:
        if type(op.index) is not int:
            return run_overridden(op, args, kwargs)
        values: Any = op.arguments(args, kwargs)
        if type(values) is Delegated:
            return values.result
        _note(op, memory, key, args, kwargs, values)
        return _run_canonical(op, values, args, kwargs)
    tracked = False
    if not current.paused or current.gradient.enabled():
        for position in known.positions:
            tensor = args[position]
            state = tensor._state
            if state and (state == TRACKED or current.gradient.requires_grad(tensor)):
                tracked = True
    if not known.native or current.verify or (tracked and op.rule is None):
        return _run_canonical(op, tuple(known.fill(args)), args, kwargs)
    array = call_known(op, known, args)
    kind = known.kind
    if len(op.outputs) != 1:
        outputs = _outputs_of_known(op, known, array)
        if tracked:
            current.gradient.record_known_outputs(op, known, args, outputs)
        return outputs
    result = known.result
    if result is None:  # the first call like this
        if type(array) is not kind.array_type:
            array = kind.as_array(array)
        result = known.result = kind.with_dtype(kind.runtime.dtype(array))
    elif type(array) is not result.array_type:
        array = result.as_array(array)
    output = new_tensor(array, result, tuple(array.shape))
    if tracked:
        current.gradient.record_known(op, known, args, output)
    if current.paused:
        current.gradient.note_unrecorded(output)
    return output


def _outputs_of_known(op: Op, known: Known, arrays: Any) -> Any:
    """Return the tensors of what a kernel with several outputs returned in a call like one before."""
    kinds: Any = known.outputs
    if not kinds:  # the first call like this
        outputs = _wrapped(op, known.kind, arrays)
        known.outputs = tuple([output._kind for output in outputs])
        return outputs
    found: list[Any] = []
    for number, array in enumerate(arrays):
        kind: Kind = kinds[number]
        if type(array) is not kind.array_type:
            array = kind.as_array(array)
        output = new_tensor(array, kind, tuple(array.shape))
        if current.paused:
            current.gradient.note_unrecorded(output)
        found.append(output)
    named: Any = op.named
    return tuple(found) if named is None else named(*found)


def _call_of_list(op: Op, memory: Memory, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call such a composite of a list of tensors and of plain values: unless recorded, by what is known."""
    recorded = not current.paused or current.gradient.enabled()
    parts: list[Any] = []
    tensors: list[Any] = args[0]
    shaped = op.canonical is not None  # what a rule comes to depends on shapes, too
    for tensor in tensors:
        if not isinstance(tensor, TensorBase) or (
            recorded
            and tensor._state
            and (tensor._state == TRACKED or current.gradient.requires_grad(tensor))
        ):
            return run_overridden(op, args, kwargs)
        parts.append(tensor._kind)
        if shaped:
            parts.append(tensor._shape)
    key = (*parts, *key_of(args[1:], kwargs))
    try:
        known = memory.known.get(key)
    except TypeError:
        return run_overridden(op, args, kwargs)
    if known is None:
        if type(op.index) is not int:
            return run_overridden(op, args, kwargs)
        values: Any = op.arguments(args, kwargs)
        _note_list(op, memory, key, args, values)
        return _run_canonical(op, values, args, kwargs)
    if not known.native or current.verify:
        return run_overridden(op, args, kwargs)
    array = call_known(op, known, args)
    kind = known.kind
    if len(op.outputs) != 1:
        return _wrapped(op, kind, array)
    if type(array) is not kind.array_type:
        array = kind.as_array(array)
    result = kind.with_dtype(kind.runtime.dtype(array))
    output = new_tensor(array, result, tuple(array.shape))
    if current.paused:
        current.gradient.note_unrecorded(output)
    return output


def _note_list(op: Op, memory: Memory, key: Any, args: tuple[Any, ...], values: Any) -> None:
    """Remember a call of a list of tensors, without the tensors, and whether a kernel serves it."""
    if not args[0] or type(values) is Delegated or not _same_items(values[0], args[0]):
        return
    rest = values[1:]
    if first_tensor(rest) is not None or zeros(rest):
        return
    kind = args[0][0]._kind
    spec = Spec.__new__(Spec)
    spec.values, spec.kind, spec.outputs = (None, *rest), kind, ()
    known = keep(memory, key, Known(op, spec, (), ()))
    known.listed = True
    known.native = (
        not kind.is_meta and current.native_kernel(op, kind) and _same_kind(values, kind, op.mixed)
    )


def _note(
    op: Op, memory: Memory, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any], values: Any
) -> None:
    """Remember a call whose tensors are of one kind, and whether a kernel serves it."""
    spec = _spec_of_values(values)
    if spec is None:
        return
    kind = spec.kind
    known = remember(op, memory, key, args, kwargs, spec)
    if known is not None:
        known.native = current.native_kernel(op, kind) and _same_kind(values, kind, op.mixed)


def _same_items(values: Any, given: Any) -> bool:
    """Return whether a rule left the list of tensors as it was."""
    return len(values) == len(given) and all([a is b for a, b in zip(values, given, strict=True)])


def composite_spec(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Spec | None:
    """Return the canonical arguments of a composite's call as a spec; None for a call of no tensor's kind."""
    return _spec_of_values(op.arguments(args, kwargs))


def _spec_of_values(values: Any) -> Spec | None:
    first = None if type(values) is Delegated else first_tensor(values)
    if first is None:
        return None
    spec = Spec.__new__(Spec)
    spec.values, spec.kind, spec.outputs = values, first._kind, ()
    return spec


def run_decomposition(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a composite by its rule, if it has one, and its decomposition."""
    if op.canonical is None:
        return op.function(*args, **kwargs)
    values: Any = op.arguments(args, kwargs)
    return values.result if type(values) is Delegated else op.decompose(values)


def call_ruled(op: Op, memory: Memory, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a composite by its decomposition; of calls like one before, what the rule returned is known."""
    if op.random:
        return run_decomposition(op, args, kwargs)
    key = key_of(args, kwargs)
    try:
        known = memory.known.get(key)
    except TypeError:  # an argument that cannot be a key, such as a list
        return run_decomposition(op, args, kwargs)
    if known is not None:
        return op.decompose(tuple(known.fill(args)))
    values: Any = op.arguments(args, kwargs)
    if type(values) is Delegated:
        return values.result
    first = first_tensor(values)
    if first is not None:
        spec = Spec.__new__(Spec)
        spec.values, spec.kind, spec.outputs = values, first._kind, ()
        remember(op, memory, key, args, kwargs, spec)
    return op.decompose(values)


def run_overridden(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a composite that a kernel or a derivative may stand in for."""
    if type(op.index) is not int:
        op.index.__index__()  # loads the extension that registers the op
    return _run_canonical(op, op.arguments(args, kwargs), args, kwargs)


def _run_canonical(op: Op, values: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call such a composite with canonical arguments, or return what its rule delegated the call to."""
    if type(values) is Delegated:
        return values.result
    first = first_tensor(values)
    if first is None:
        return _decomposed(op, values, args, kwargs)
    kind = first._kind
    served = (
        not kind.is_meta and current.native_kernel(op, kind) and _same_kind(values, kind, op.mixed)
    )
    tracked = (not current.paused or current.gradient.enabled()) and any_tracked(values)
    if not tracked:
        if served:
            return _run_kernel(op, values, kind)
        return _decomposed(op, values, args, kwargs)
    # A kernel of an op without a derivative is differentiated through the decomposition, which must not
    # draw other numbers then, nor write.
    if op.rule is None and not (served and not op.writes and not op.random):
        return _decomposed(op, values, args, kwargs)
    with current.gradient_off():
        if served:
            results = _run_kernel(op, values, kind)
        else:
            results = _decomposed(op, values, args, kwargs)
    current.gradient.record(
        op, values, tuple(results) if isinstance(results, tuple) else (results,)
    )
    return results


def _decomposed(op: Op, values: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if op.canonical is None:
        return op.function(*args, **kwargs)
    return op.decompose(values)


def _run_kernel(op: Op, values: tuple[Any, ...], kind: Kind) -> Any:
    if op.writes:
        return _run_writing(op, values, kind)
    raw, _ = unwrap(op, values, kind)
    if op.updates:
        with kind.runtime.quiet():  # once: what is written half cannot be tried again
            results = kernel_of(op, kind)(*raw)
        for place in op.updates:
            if values[place] is not None:
                bump_version(values[place])
    else:
        results = call_kernel(op, kind, raw)
    if current.verify:
        _verify_composite(op, kind, results, values)
    if not op.outputs:
        return results
    if len(op.outputs) == 1 and not isinstance(results, (tuple, list)):
        return _wrapped(op, kind, (results,))[0]
    return _wrapped(op, kind, results)


def _wrapped(op: Op, kind: Kind, results: Any) -> Any:
    """Return the tensors of what a kernel returned."""
    if not op.cacheable:  # a tuple may hold tuples, such as a histogram's edges per dimension
        return tuple(
            [_wrapped(op, kind, a) if type(a) is tuple else _own(kind, a) for a in results]
        )
    runtime = kind.runtime
    arrays = [a if type(a) is kind.array_type else kind.as_array(a) for a in results]
    outputs = tuple([wrap(array, kind.with_dtype(runtime.dtype(array))) for array in arrays])
    if current.paused:
        for output in outputs:
            current.gradient.note_unrecorded(output)
    named: Any = op.named
    return outputs if named is None else named(*outputs)


def _own(kind: Kind, array: Any) -> Any:
    if type(array) is not kind.array_type:
        array = kind.as_array(array)
    return wrap(array, kind.with_dtype(kind.runtime.dtype(array)))


def _verify_composite(op: Op, kind: Kind, results: Any, values: tuple[Any, ...]) -> None:
    from . import contracts

    current.verify = contracts.every_call
    contracts.check_composite(op, kind, results, values)


def _run_writing(op: Op, values: tuple[Any, ...], kind: Kind) -> None:
    """Call the kernel of a composite that changes its arguments."""
    targets: list[Any] = []
    for place in op.writes:
        value = values[place]
        targets += value if isinstance(value, (list, tuple)) else [value]
    for target in targets:
        current.gradient.before_inplace(op, target, ())
        if overlaps(target):
            raise RuntimeError(
                f"{op.name}(): more than one element of a written-to tensor of shape "
                f"{list(target._shape)} refers to a single memory location; clone() it first"
            )
    raw, _ = unwrap(op, values, kind)
    with kind.runtime.quiet():  # once: what is written half cannot be tried again
        kernel_of(op, kind)(*raw)
    for target in targets:
        bump_version(target)


def any_tracked(values: tuple[Any, ...]) -> bool:
    """Return whether any tensor among values and lists of values requires grad."""
    for value in values:
        if isinstance(value, TensorBase):
            # A view has to ask: it requires grad if its base has come to by now.
            state = value._state
            if state and (state == TRACKED or current.gradient.requires_grad(value)):
                return True
        elif isinstance(value, (list, tuple)) and any_tracked(tuple(value)):
            return True
    return False


def _same_kind(values: tuple[Any, ...], kind: Kind, mixed: bool) -> bool:
    """Return whether all tensors are of one device, and, unless `mixed`, all floats of one dtype."""
    for value in values:
        if isinstance(value, TensorBase):
            other = value._kind
            if other is not kind and (
                other.device is not kind.device or (not mixed and other.dtype.category >= FLOATING)
            ):
                return False
        elif isinstance(value, (list, tuple)) and not _same_kind(tuple(value), kind, mixed):
            return False
    return True
