"""Calls of ops of a list of tensors, by the call cache."""

from __future__ import annotations

from typing import Any

from ..tensor.base import TRACKED, TensorBase
from .arguments import plain_arguments, reads_tensor
from .call_cache import CachedCall, CallCache, store_call
from .call_keys import all_given, ambiguous, call_key
from .composite_results import finished, wrapped
from .composite_runs import of_one_key, run_canonical, run_overridden
from .execution import execute, run_cached
from .op import Delegated, Op, Spec, first_tensor
from .released_views import executed, released
from .replay import replayed
from .state import dispatch_state


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
        return wrapped(op, cached.key, array)
    output = finished(op, cached, array)
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
    return run_canonical(op, values, args, kwargs)


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
        and of_one_key(values, tensor_key, op.mixed)
    )


def _same_items(values: Any, given: Any) -> bool:
    """Return whether a rule left the list of tensors as it was."""
    return len(values) == len(given) and all([a is b for a, b in zip(values, given, strict=True)])
