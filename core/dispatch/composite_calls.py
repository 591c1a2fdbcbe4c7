"""Calls of composites that have a kernel or a derivative of their own, by the call cache."""

from __future__ import annotations

from typing import Any

from ..tensor.base import TRACKED, TensorBase
from .arguments import plain_arguments, reads_tensor
from .call_cache import CallCache, cache_call, cache_delegation, spec_of_values
from .call_keys import all_given, call_key
from .composite_results import finished, finished_all
from .composite_runs import (
    decomposed,
    of_one_key,
    record,
    run_canonical,
    run_decomposition,
    run_overridden,
)
from .execution import run_cached
from .keys import made_key
from .list_calls import call_of_list
from .op import Delegated, Op, Spec
from .released_views import released
from .replay import replayed, replayed_unrecorded
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
            elif cache.converts:
                replay = replayed_unrecorded(op, cache, args, kwargs)
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
            return run_canonical(op, values, args, kwargs)
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
            return run_canonical(op, values, args, kwargs)
        with dispatch_state.gradient_off():
            results = decomposed(op, values, args, kwargs)
        if isinstance(results, tuple):  # as many as the arguments ask for
            record(op, values, tuple(results))
        else:
            dispatch_state.gradient.record_cached(op, cached, given, results)
        return results
    array = run_cached(op, cached, given)
    if not op.outputs:  # a plain value
        return array
    if len(op.outputs) != 1:
        outputs = finished_all(op, cached, array)
        if tracked:
            dispatch_state.gradient.record_cached_outputs(op, cached, given, outputs)
        return outputs
    output = finished(op, cached, array)
    if tracked:
        dispatch_state.gradient.record_cached(op, cached, given, output)
    if dispatch_state.inference:
        dispatch_state.gradient.mark_if_inference(output)
    return output


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
        cached.native = dispatch_state.native_kernel(op, tensor_key) and of_one_key(
            values, tensor_key, op.mixed
        )


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
        return run_canonical(op, tuple(cached.fill(all_given(args, kwargs))), args, kwargs)
    if type(op.index) is not int:
        op.index.__index__()  # loads the extension that registers the op
    given, named = args, kwargs
    args, kwargs = plain_arguments(op, args, kwargs)
    values: Any = op.arguments(args, kwargs)
    spec = spec_of_values(values)
    if spec is not None and not reads_tensor(given, named, args, kwargs):
        cache_call(op, cache, key, args, kwargs, spec)
    return run_canonical(op, values, args, kwargs)


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
