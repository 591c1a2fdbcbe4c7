"""Calls of view ops, by plan: what a call comes to is found out once.

A view op's rule, or its body, reads shapes and plain values, and ends in :func:`.execution.show` for one or
several primitive views. Calls alike end in the same ones, so the next call goes straight to their kernels.
"""

from __future__ import annotations

from typing import Any

from ..tensor.base import TRACKED, Storage, TensorBase, new_tensor
from .arguments import plain_arguments
from .call_cache import CallCache, ViewPlan, store_call
from .composite_calls import call_overridden, run_decomposition
from .execution import contract, execute, note_shown, shown_views
from .op import Op
from .state import dispatch_state


def call_view(
    op: Op, plans: CallCache, cache: CallCache, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call a view op, by its plan where there is one."""
    key = _view_key(args, kwargs)
    if key is None or (dispatch_state.verify and op.kind == "primitive"):
        return _run(op, cache, args, kwargs)
    planned: Any = plans.calls.get(key)
    if planned is None:
        return _run_and_plan(op, plans, cache, key, args, kwargs)
    source = args[0]
    if type(planned) is ViewPlan:
        plan = planned
        if plan.anywhere or source._key.runtime.is_contiguous(source._array):
            return follow(plan, source)
    elif not source._state or not _tracked(source):
        # While recorded, several views can be the outputs of one node, which is the op's own affair.
        return tuple([follow(plan, source) for plan in planned])
    return _run(op, cache, args, kwargs)


def follow(plan: ViewPlan, source: Any) -> Any:
    """Return the view of a tensor that a plan is for."""
    key = source._key
    op = plan.op
    if plan.single:
        array = key.kernels[op.index](source._array, plan.value)
    else:
        array = key.kernels[op.index](source._array, *plan.values)
    if dispatch_state.verify and array.shape != plan.shape:
        raise contract(op, key, f"shape {list(array.shape)}", f"{list(plan.shape)}")
    output = new_tensor(array, key, plan.shape)
    storage = source._storage
    if storage is None:
        storage = source._storage = Storage.__new__(Storage)  # no call of an __init__
        storage.version = source._writes
    output._storage = storage
    if dispatch_state.planning:
        note_shown(op, source, plan.values, output)
    dispatch_state.gradient.record_view(op, source, plan.values, output, plan)
    return output


def _view_key(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
    """Return the cache key of a call of one tensor and of ints; None for any other call."""
    if not args or not isinstance(args[0], TensorBase):
        return None
    source = args[0]
    tensor_key = source._key
    if tensor_key.is_meta:
        return None
    parts: list[Any] = [tensor_key, source._shape]
    for arg in args[1:]:
        if type(arg) is not int:  # True is none
            if isinstance(arg, (tuple, list)):
                for item in arg:
                    if type(item) is not int:
                        return None
                parts.append(tuple(arg))
                continue
            if arg is not None:
                return None
        parts.append(arg)
    if kwargs:
        for name, value in kwargs.items():
            if type(value) is not int:
                return None
            parts.append(name)
            parts.append(value)
    return tuple(parts)


def _tracked(source: Any) -> bool:
    state = source._state
    return (not dispatch_state.grad_disabled or dispatch_state.gradient.enabled()) and (
        state == TRACKED or dispatch_state.gradient.requires_grad(source)
    )


def _run(op: Op, cache: CallCache, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if op.kind == "primitive":
        args, kwargs = plain_arguments(op, args, kwargs)
        return execute(op, op.function(*args, **kwargs))
    if op.overridden:
        return call_overridden(op, cache, args, kwargs)
    return run_decomposition(op, args, kwargs)


def _run_and_plan(
    op: Op,
    plans: CallCache,
    cache: CallCache,
    key: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    outer = shown_views.views
    views = shown_views.views = []
    dispatch_state.count_planning(1)
    try:
        result = _run(op, cache, args, kwargs)
    finally:
        shown_views.views = outer
        dispatch_state.count_planning(-1)
    if outer is not None:
        outer += views
    outputs = result if type(result) is tuple else (result,)
    source = args[0]
    if views and len(views) == len(outputs):
        found = []
        for (primitive, shown, values, made), output in zip(views, outputs, strict=True):
            if shown is not source or made is not output:
                return result
            if primitive.reads_layout and not primitive.layout:
                return result  # its arguments tell where in memory the source begins
            found.append(ViewPlan(primitive, values, source._shape, output._shape))
        if type(result) is not tuple:
            store_call(plans, key, found[0])
        elif all([plan.anywhere for plan in found]):
            store_call(plans, key, tuple(found))
    return result
