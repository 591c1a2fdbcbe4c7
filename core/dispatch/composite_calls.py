"""Calls of composites that have a kernel or a derivative of their own."""

from __future__ import annotations

from typing import Any

from ..device.dtypes import COMPLEX, FLOATING
from ..device.meta import lay_out
from ..tensor.base import TRACKED, TensorBase, bump_version, unset_tensor, wrap
from . import contracts
from .arguments import plain_arguments, reads_tensor
from .call_cache import (
    CachedCall,
    CallCache,
    cache_call,
    cache_delegation,
    spec_of_values,
    store_call,
)
from .call_keys import all_given, ambiguous, call_key
from .execution import (
    call_kernel,
    contract,
    execute,
    kernel_of,
    note_together,
    overlaps,
    run_cached,
    unwrap,
)
from .keys import DispatchKey, made_key
from .op import Delegated, Op, Spec, first_tensor
from .released_views import executed, released
from .replay import replayed
from .state import dispatch_state


def call_overridden(op: Op, cache: CallCache, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call such a composite, by the call cache."""
    if not op.cacheable:
        return _call_uncached(op, cache, args, kwargs)
    if args and (type(args[0]) is list or type(args[0]) is tuple):
        return call_of_list(op, cache, args, kwargs)
    cached = cache.recalled(args, kwargs, False)
    if cached is None:
        key = call_key(args, kwargs)
        try:
            cached = cache.calls.get(key)
        except TypeError:  # an argument that cannot be a key, such as a list
            return run_overridden(op, args, kwargs)
        if cached is None:
            if type(op.index) is not int:
                return run_overridden(op, args, kwargs)
            if cache.delegates:
                replay = replayed(op, cache, args, kwargs)
                if replay is not NotImplemented:
                    return replay
            given, named = args, kwargs
            args, kwargs = plain_arguments(op, args, kwargs)
            values: Any = op.arguments(args, kwargs)
            alike = not reads_tensor(given, named, args, kwargs)
            if type(values) is Delegated:
                cache.delegates = cache.delegates or values.function is None
                if alike:
                    cache_delegation(op, cache, key, args, kwargs, values)
                return released(values.result, args, kwargs)
            if alike:
                _cache_call(op, cache, key, args, kwargs, values)
            return _run_canonical(op, values, args, kwargs)
        cache.note_recent(cached, args, kwargs, True)
    given = all_given(args, kwargs) if kwargs else args
    if cached.function is not None:
        filled = cached.template.copy()
        for number, slot in enumerate(cached.slots):
            filled[slot] = given[cached.arg_indices[number]]
        made = cached.function(*filled)
        if isinstance(made, TensorBase):  # as `released` does, without a call
            output = made
            if output._view is None:
                return output
        return released(made, args, kwargs)
    tracked = False
    if not dispatch_state.grad_disabled or dispatch_state.gradient.enabled():
        for position in cached.arg_indices:
            tensor = given[position]
            state = tensor._state
            if state and (state == TRACKED or dispatch_state.gradient.requires_grad(tensor)):
                tracked = True
    if not cached.native or dispatch_state.verify or (tracked and op.derivative is None):
        if not cached.native and not (tracked and op.derivative is not None):
            replay = replayed(op, cache, args, kwargs)
            if replay is not NotImplemented:
                return replay
        values = tuple(cached.fill(given))
        if cached.native or op.derivative is None or not tracked or not op.outputs:
            return _run_canonical(op, values, args, kwargs)
        with dispatch_state.gradient_off():
            results = _decomposed(op, values, args, kwargs)
        if isinstance(results, tuple):  # as many as the arguments ask for
            _record(op, values, tuple(results))
        else:
            dispatch_state.gradient.record_cached(op, cached, given, results)
        return results
    array = run_cached(op, cached, given)
    if not op.outputs:  # a plain value
        return array
    if len(op.outputs) != 1:
        outputs = _outputs_of_cached(op, cached, array)
        if tracked:
            dispatch_state.gradient.record_cached_outputs(op, cached, given, outputs)
        return outputs
    output = _finished(op, cached, array)
    if tracked:
        dispatch_state.gradient.record_cached(op, cached, given, output)
    if dispatch_state.inference:
        dispatch_state.gradient.mark_if_inference(output)
    return output


def _finished(op: Op, cached: CachedCall, array: Any) -> Any:
    """Return the tensor of what a kernel with one output returned in a cached call."""
    result = cached.result
    if result is None:  # the first call like this
        key = cached.key
        if type(array) is not key.array_type:
            array = key.as_array(array)
        result = cached.result = key.with_dtype(key.runtime.dtype(array))
    elif type(array) is not result.array_type:
        array = result.as_array(array)
    shape: Any = tuple(array.shape)
    if cached.shape is not None and shape != cached.shape:
        raise contract(op, cached.key, f"shape {list(shape)}", f"{list(cached.shape)}")
    output = unset_tensor()  # set here: as Python, a call costs more than all of it
    output._array = array
    output._key = result
    output._shape = shape
    output._state = 0
    output._node = None
    output._writes = 0
    output._storage = None
    output._extra = None
    output._view = None
    return output


def _outputs_of_cached(op: Op, cached: CachedCall, arrays: Any) -> Any:
    """Return the tensors of what a kernel with several outputs returned in a cached call."""
    keys: Any = cached.outputs
    if not keys:  # the first call like this
        outputs = _wrapped(op, cached.key, arrays)
        cached.outputs = tuple([output._key for output in outputs])
        return outputs
    found: list[Any] = []
    for number, array in enumerate(arrays):
        key: DispatchKey = keys[number]
        if type(array) is not key.array_type:
            array = key.as_array(array)
        output = unset_tensor()  # set here: as Python, a call costs more than all of it
        output._array = array
        output._key = key
        output._shape = tuple(array.shape)
        output._state = 0
        output._node = None
        output._writes = 0
        output._storage = None
        output._extra = None
        output._view = None
        if dispatch_state.inference:
            dispatch_state.gradient.mark_if_inference(output)
        found.append(output)
    named: Any = op.named
    return tuple(found) if named is None else named(*found)


def call_of_list(op: Op, cache: CallCache, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call an op of a list of tensors and of plain values, by the call cache."""
    recorded = not dispatch_state.grad_disabled or dispatch_state.gradient.enabled()
    tensors: Any = args[0]
    tracked = False
    shaped = op.kind == "primitive" or op.canonical is not None  # what a rule returns, too
    for item in tensors:
        if not isinstance(item, TensorBase):
            return _run_list(op, args, kwargs)
        tensor = item
        if (
            recorded
            and tensor._state
            and (tensor._state == TRACKED or dispatch_state.gradient.requires_grad(tensor))
        ):
            tracked = True
    if tracked and (not shaped or op.derivative is None):
        return _run_list(op, args, kwargs)
    cached = cache.recalled(args, kwargs, True)
    if cached is None:
        parts: list[Any] = []
        for item in tensors:
            tensor = item
            parts.append(tensor._key)
            if shaped:
                parts.append(tensor._shape)
        key = (*parts, *call_key(args[1:], kwargs))
        try:
            cached = cache.calls.get(key)
        except TypeError:
            return _run_list(op, args, kwargs)
        if cached is None:
            return _run_and_cache_list(op, cache, key, args, kwargs)
        cache.note_recent(cached, args, kwargs, shaped)
    if not cached.native or dispatch_state.verify:
        if not cached.native and op.kind == "composite":
            replay = replayed(op, cache, args, kwargs)
            if replay is not NotImplemented:
                return replay
        return _run_list(op, args, kwargs)
    several = len(op.outputs) != 1
    if several and tracked:
        return _run_list(op, args, kwargs)
    array = run_cached(op, cached, args)
    if several:
        return _wrapped(op, cached.key, array)
    output = _finished(op, cached, array)
    if tracked:
        dispatch_state.gradient.record_listed(op, cached, tensors, output)
    if dispatch_state.inference:
        dispatch_state.gradient.mark_if_inference(output)
    return output


def _run_list(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if op.kind == "primitive":
        args, kwargs = plain_arguments(op, args, kwargs)
        return executed(op, args, kwargs)
    return run_overridden(op, args, kwargs)


def _run_and_cache_list(
    op: Op, cache: CallCache, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    if type(op.index) is not int:
        return run_overridden(op, args, kwargs)
    given, named = args, kwargs
    args, kwargs = plain_arguments(op, args, kwargs)
    if (
        reads_tensor(given, named, args, kwargs)
        or ambiguous((*args[1:], *kwargs.values()))
        or all_given(args, kwargs) is not args
    ):
        return _run_list(op, args, kwargs)
    if op.kind == "primitive":
        spec = op.function(*args, **kwargs)
        if type(spec) is Delegated:
            return released(spec.result, args, kwargs)
        _cache_list_call(op, cache, key, args, spec)
        return execute(op, spec)
    values: Any = op.arguments(args, kwargs)
    if type(values) is not Delegated and args[0]:
        spec = Spec.__new__(Spec)
        spec.values, spec.key, spec.outputs = values, args[0][0]._key, ()
        _cache_list_call(op, cache, key, args, spec)
    return _run_canonical(op, values, args, kwargs)


def _cache_list_call(op: Op, cache: CallCache, key: Any, args: tuple[Any, ...], spec: Spec) -> None:
    """Cache a call of a list of tensors, without the tensors, and whether a kernel serves it."""
    values = spec.values
    if not args[0] or not _same_items(values[0], args[0]):
        return
    rest = values[1:]
    if first_tensor(rest) is not None:
        return
    tensor_key = spec.key
    own = Spec.__new__(Spec)
    own.values, own.key, own.outputs = (None, *rest), tensor_key, spec.outputs
    cached = store_call(cache, key, CachedCall(op, own, (), ()))
    cached.listed = True
    cached.native = (
        not tensor_key.is_meta
        and (op.kind == "primitive" or dispatch_state.native_kernel(op, tensor_key))
        and _same_key(values, tensor_key, op.mixed)
    )


def _cache_call(
    op: Op, cache: CallCache, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any], values: Any
) -> None:
    """Cache a call whose tensors are of one key, or that tells one, and whether a kernel serves it."""
    spec = spec_of_values(values)
    if spec is None:
        made = made_key(values)
        if made is None:
            return
        spec = Spec.__new__(Spec)
        spec.values, spec.key, spec.outputs = values, made, ()
    tensor_key = spec.key
    cached = cache_call(op, cache, key, args, kwargs, spec)
    if cached is not None:
        cached.native = dispatch_state.native_kernel(op, tensor_key) and _same_key(
            values, tensor_key, op.mixed
        )


def _same_items(values: Any, given: Any) -> bool:
    """Return whether a rule left the list of tensors as it was."""
    return len(values) == len(given) and all([a is b for a, b in zip(values, given, strict=True)])


def run_decomposition(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a composite by its rule, if it has one, and its decomposition."""
    args, kwargs = plain_arguments(op, args, kwargs)
    values: Any = None if op.canonical is None else op.arguments(args, kwargs)
    if type(values) is Delegated:
        return released(values.result, args, kwargs)
    return _decomposed(op, values, args, kwargs)


def _call_uncached(op: Op, cache: CallCache, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call an op that writes, what its rule returns being cached, or one of any number of outputs."""
    if not op.writes or op.canonical is None or not args or not isinstance(args[0], TensorBase):
        return run_overridden(op, args, kwargs)
    cached = cache.recalled(args, kwargs, False)
    key: tuple[Any, ...] = ()
    if cached is None:
        key = call_key(args, kwargs)
        try:
            cached = cache.calls.get(key)
        except TypeError:  # an argument that cannot be a key, such as a list
            return run_overridden(op, args, kwargs)
        if cached is not None:
            cache.note_recent(cached, args, kwargs, True)
    if cached is not None:
        return _run_canonical(op, tuple(cached.fill(all_given(args, kwargs))), args, kwargs)
    if type(op.index) is not int:
        op.index.__index__()  # loads the extension that registers the op
    given, named = args, kwargs
    args, kwargs = plain_arguments(op, args, kwargs)
    values: Any = op.arguments(args, kwargs)
    spec = spec_of_values(values)
    if spec is not None and not reads_tensor(given, named, args, kwargs):
        cache_call(op, cache, key, args, kwargs, spec)
    return _run_canonical(op, values, args, kwargs)


def call_ruled(op: Op, cache: CallCache, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a composite by its decomposition; what its rule returns is cached."""
    if op.random:
        return run_decomposition(op, args, kwargs)
    cached = cache.recalled(args, kwargs, False)
    key: tuple[Any, ...] = ()
    if cached is None:
        key = call_key(args, kwargs)
        try:
            cached = cache.calls.get(key)
        except TypeError:  # an argument that cannot be a key, such as a list
            return run_decomposition(op, args, kwargs)
        if cached is not None:
            cache.note_recent(cached, args, kwargs, True)
    if cached is not None:
        given = all_given(args, kwargs) if kwargs else args
        filled = cached.template.copy()
        for number, slot in enumerate(cached.slots):
            filled[slot] = given[cached.arg_indices[number]]
        if cached.function is not None:
            made = cached.function(*filled)
        elif op.canonical is not None and op.leading == len(filled):
            made = op.function(*filled)
        else:
            made = op.decompose(tuple(filled))
        return released(made, args, kwargs)
    given, named = args, kwargs
    args, kwargs = plain_arguments(op, args, kwargs)
    values: Any = op.arguments(args, kwargs)
    alike = not reads_tensor(given, named, args, kwargs)
    if type(values) is Delegated:
        if alike:
            cache_delegation(op, cache, key, args, kwargs, values)
        return released(values.result, args, kwargs)
    spec = spec_of_values(values)
    if spec is not None and alike:
        cache_call(op, cache, key, args, kwargs, spec)
    return released(op.decompose(values), args, kwargs)


def run_overridden(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a composite that a kernel or a derivative may stand in for."""
    if type(op.index) is not int:
        op.index.__index__()  # loads the extension that registers the op
    args, kwargs = plain_arguments(op, args, kwargs)
    return _run_canonical(op, op.arguments(args, kwargs), args, kwargs)


def _run_canonical(op: Op, values: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call such a composite with canonical arguments, or return what its rule delegated the call to."""
    if type(values) is Delegated:
        return released(values.result, args, kwargs)
    first = first_tensor(values)
    key = made_key(values) if first is None else first._key
    if key is None:
        return _decomposed(op, values, args, kwargs)
    served = (
        not key.is_meta
        and dispatch_state.native_kernel(op, key)
        and _same_key(values, key, op.mixed)
    )
    tracked = (
        not dispatch_state.grad_disabled or dispatch_state.gradient.enabled()
    ) and any_tracked(values)
    if not tracked or not (op.outputs or op.writes):  # of a plain value there is nothing to record
        if served:
            return _run_kernel(op, values, key)
        return _decomposed(op, values, args, kwargs)
    # A kernel of an op without a derivative is differentiated through the decomposition, which must not
    # draw other numbers then, nor write.
    if op.derivative is None and not (served and not op.writes and not op.random):
        return _decomposed(op, values, args, kwargs)
    with dispatch_state.gradient_off():
        if served:
            results = _run_kernel(op, values, key)
        else:
            results = _decomposed(op, values, args, kwargs)
    _record(op, values, tuple(results) if isinstance(results, tuple) else (results,))
    return results


def _record(op: Op, values: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
    dispatch_state.gradient.record(op, values, outputs)
    if dispatch_state.planning and op.derivative is not None:
        note_together(op, values, outputs)


def _decomposed(op: Op, values: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if op.canonical is None:
        args, kwargs = plain_arguments(op, args, kwargs)
        made = released(op.function(*args, **kwargs), args, kwargs)
    else:
        made = released(op.decompose(values), args, kwargs)
    if op.elementwise and isinstance(made, TensorBase) and made._key.is_meta:
        # As a kernel would, whatever the steps of the body.
        lay_out(made, args if values is None else values)
    return made


def _run_kernel(op: Op, values: tuple[Any, ...], key: DispatchKey) -> Any:
    if op.writes:
        return _run_writing(op, values, key)
    raw, _ = unwrap(op, values, key)
    if op.updates:
        with key.runtime.quiet():  # once: what is written half cannot be tried again
            results = kernel_of(op, key)(*raw)
        for index in op.updates:
            if values[index] is not None:
                bump_version(values[index])
    else:
        results = call_kernel(op, key, raw)
    if dispatch_state.verify:
        _verify_composite(op, key, results, values)
    if not op.outputs:
        return results
    if len(op.outputs) == 1 and not isinstance(results, (tuple, list)):
        return _output(key, results)
    return _wrapped(op, key, results)


def _wrapped(op: Op, key: DispatchKey, results: Any) -> Any:
    """Return the tensors of what a kernel returned."""
    # A tuple may hold tuples, such as a histogram's edges per dimension.
    outputs = tuple(
        [_wrapped(op, key, a) if type(a) is tuple else _output(key, a) for a in results]
    )
    named: Any = op.named
    return outputs if named is None else named(*outputs)


def _output(key: DispatchKey, array: Any) -> Any:
    if type(array) is not key.array_type:
        array = key.as_array(array)
    output = wrap(array, key.with_dtype(key.runtime.dtype(array)))
    if dispatch_state.inference:
        dispatch_state.gradient.mark_if_inference(output)
    return output


def _verify_composite(op: Op, key: DispatchKey, results: Any, values: tuple[Any, ...]) -> None:
    dispatch_state.verify = contracts.every_call
    contracts.check_composite(op, key, results, values)


def _run_writing(op: Op, values: tuple[Any, ...], key: DispatchKey) -> None:
    """Call the kernel of a composite that changes its arguments."""
    targets: list[Any] = []
    for index in op.writes:
        value = values[index]
        targets += value if isinstance(value, (list, tuple)) else [value]
    recorded = not dispatch_state.grad_disabled or dispatch_state.gradient.enabled()
    for target in targets:
        if not target._state and target._storage is None and target._extra is None:
            continue  # nothing is recorded of it, and nothing shares its memory
        if recorded or (target._extra is not None and target._extra.inference):
            dispatch_state.gradient.before_inplace(op, target, ())
        if overlaps(target):
            raise RuntimeError(
                f"{op.name}(): more than one element of a written-to tensor of shape "
                f"{list(target._shape)} refers to a single memory location; clone() it first"
            )
    raw, _ = unwrap(op, values, key)
    with key.runtime.quiet():  # once: what is written half cannot be tried again
        kernel_of(op, key)(*raw)
    for target in targets:
        bump_version(target)


def any_tracked(values: tuple[Any, ...]) -> bool:
    """Return whether any tensor among values and lists of values requires grad."""
    for value in values:
        if isinstance(value, TensorBase):
            # A view has to ask: it requires grad if its base has come to by now.
            state = value._state
            if state and (state == TRACKED or dispatch_state.gradient.requires_grad(value)):
                return True
        elif isinstance(value, (list, tuple)) and any_tracked(tuple(value)):
            return True
    return False


def _same_key(values: tuple[Any, ...], key: DispatchKey, mixed: bool) -> bool:
    """Return whether all tensors are of one device, and, unless `mixed`, all floats of one dtype.

    A complex number beside real tensors is of another dtype, too.
    """
    for value in values:
        if isinstance(value, TensorBase):
            other = value._key
            if other is not key and (
                other.device is not key.device or (not mixed and other.dtype.category >= FLOATING)
            ):
                return False
        elif isinstance(value, (list, tuple)):
            if not _same_key(tuple(value), key, mixed):
                return False
        elif type(value) is complex and key.dtype.category < COMPLEX:
            return False
    return True
