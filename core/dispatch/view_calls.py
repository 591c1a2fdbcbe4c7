"""Calls of view ops, by plan: what a call comes to is found out once.

A view op's rule, or its body, reads shapes and plain values, and ends in :func:`.execution.show` for one or
several primitive views. Calls alike end in the same ones, so the next call goes straight to their kernels.
"""

from __future__ import annotations

import operator
from typing import Any

from ..device.dtypes import DType
from ..tensor.base import TRACKED, Storage, TensorBase, new_tensor
from .arguments import plain_arguments
from .call_cache import CallCache, note_latest, store_plan
from .composite_calls import call_overridden
from .composite_runs import run_decomposition
from .dispatcher import rescued
from .execution import note_shown, note_together, shown_views, verify
from .op import Op
from .released_views import executed
from .state import dispatch_state
from .view_plans import (
    ABSENT,
    ANYWHERE,
    AT_START,
    IN_ROWS,
    ViewChain,
    ViewPlan,
    ViewPlans,
    layout_read,
)


def show_again(op: Op, input: Any, first: Any, second: Any, third: Any, fourth: Any) -> Any:
    """Return what a call comes to that is like the latest one of an op, or like what followed that.

    None of any other call. Arguments that are not given are `ABSENT`; no layer is active.
    """
    known: CallCache = op.plans
    planned = known.latest
    if planned is None or not isinstance(input, TensorBase):
        return None
    source = input
    plain = first
    if known.by_shape:
        if not isinstance(first, TensorBase):
            return None
        plain = first._shape
    if not planned.is_of(source, plain, second, third, fourth):
        planned = planned.following
        if planned is None or not planned.is_of(source, plain, second, third, fourth):
            return None
        known.latest = planned
    try:
        return _followed(planned, source)
    except Exception as error:
        made = rescued(op, given_arguments(input, first, second, third, fourth), {}, error)
        if made is None:
            raise
        return made[0]


def given_arguments(*args: Any) -> tuple[Any, ...]:
    """Return the arguments that were given."""
    for position, arg in enumerate(args):
        if arg is ABSENT:
            return args[:position]
    return args


def call_view(op: Op, cache: CallCache, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a view op, by its plan where there is one."""
    known: CallCache = op.plans
    key = _view_key(args, kwargs, known.by_shape)
    if key is None or (dispatch_state.verify and op.kind == "primitive"):
        return _run(op, cache, args, kwargs)
    planned: Any = known.calls.get(key)
    if planned is None:
        return _run_and_plan(op, known, cache, key, args, kwargs)
    source = args[0]
    made = _followed(planned, source)
    if made is None:
        if type(planned) is not ViewPlans or planned.separate:
            return _run(op, cache, args, kwargs)
        return _run_and_plan(op, known, cache, key, args, kwargs)
    if planned.key is not None:
        note_latest(known, planned)
    return made


def _followed(planned: Any, source: Any) -> Any:
    """Return what a planned call comes to; None if it has to be made anew."""
    if type(planned) is ViewPlan:
        plan = planned
        where = plan.where
        if where == ANYWHERE or (
            source._key.runtime.is_contiguous(source._array)
            if where == IN_ROWS
            else _lies(source, where)
        ):
            return follow(plan, source)
        return None
    if type(planned) is ViewChain:
        chain = planned
        if chain.where != ANYWHERE and not _lies(source, chain.where):
            return None
        shown = source
        for plan in chain.views:
            shown = follow(plan, shown)
        return shown
    plans = planned
    if not source._state or not _tracked(source):
        return tuple([follow(plan, source) for plan in plans.views])
    return None if plans.op is None else _follow_together(plans, source)


def _lies(source: Any, where: int) -> bool:
    """Return whether a tensor lies in memory where a plan needs it to."""
    runtime = source._key.runtime
    if where == IN_ROWS:
        return bool(runtime.is_contiguous(source._array))
    return bool(runtime.is_at_start(source._array))


def follow(plan: ViewPlan, source: Any) -> Any:
    """Return the view of a tensor that a plan is for."""
    output = _made(plan, source)
    dispatch_state.gradient.record_view(plan.op, source, plan.values, output, plan)
    return output


def _follow_together(plans: ViewPlans, source: Any) -> Any:
    """Return several views of a tensor that requires grad, of which one node is the maker."""
    outputs = [_made(plan, source) for plan in plans.views]
    dispatch_state.gradient.record_views(source, outputs, plans)
    views = tuple(outputs)
    if dispatch_state.planning and plans.op is not None:
        note_together(plans.op, (source, *plans.values), views)
    return views


def _made(plan: ViewPlan, source: Any) -> Any:
    """Return the view that a plan is for, not recorded yet."""
    key = source._key
    op = plan.op
    if plan.single:
        array = key.kernels[op.index](source._array, plan.values[0])
    else:
        array = key.kernels[op.index](source._array, *plan.values)
    result = key if plan.result is None else plan.result
    if dispatch_state.verify:
        verify(op, key, array, ((plan.shape, result.dtype),))
    output = new_tensor(array, result, plan.shape)
    storage = source._storage
    if storage is None:
        storage = source._storage = Storage.__new__(Storage)  # no call of an __init__
        storage.version = source._writes
        storage.mirror = None
    output._storage = storage
    if dispatch_state.planning:
        note_shown(op, source, plan.values, output)
    return output


def _view_key(
    args: tuple[Any, ...], kwargs: dict[str, Any], by_shape: bool
) -> tuple[Any, ...] | None:
    """Return the key of a call of one tensor, ints and dtypes, or of a second one's shape; else None."""
    if not args or not isinstance(args[0], TensorBase):
        return None
    source = args[0]
    tensor_key = source._key
    if tensor_key.is_meta:
        return None
    parts: list[Any] = [tensor_key, source._shape]
    for arg in args[1:]:
        if by_shape:
            if not isinstance(arg, TensorBase) or arg._key.intercepts:
                return None
            parts.append(arg._shape)
            continue
        if type(arg) is not int:  # True is none
            if isinstance(arg, (tuple, list)):
                for item in arg:
                    if type(item) is not int:
                        return None
                parts.append(tuple(arg))
                continue
            if arg is not None and type(arg) is not DType:
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
        return executed(op, args, kwargs)
    if op.overridden:
        return call_overridden(op, cache, args, kwargs)
    return run_decomposition(op, args, kwargs)


def _run_and_plan(
    op: Op,
    known: CallCache,
    cache: CallCache,
    key: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    outer = shown_views.views
    views = shown_views.views = []
    shown_views.together = None
    dispatch_state.count_planning(1)
    try:
        result = _run(op, cache, args, kwargs)
    finally:
        together = shown_views.together
        shown_views.views = outer
        if outer is None:
            shown_views.together = None
        dispatch_state.count_planning(-1)
    if outer is not None:
        outer += views
    source = args[0]
    latest = _plan_of(op, source, result, views, together)
    if latest is not None:
        store_plan(known, key, latest)
        if not kwargs and len(args) < 6:
            plain = tuple([arg._shape for arg in args[1:]]) if known.by_shape else args[1:]
            latest.note_call(source, plain)
            note_latest(known, latest)
    return result


def _plan_of(op: Op, source: Any, result: Any, views: list[Any], together: Any) -> Any:
    """Return the plan of a call that ended in some views, None if there is none."""
    where = layout_read(op)
    if where == AT_START and not _lies(source, AT_START):
        return None  # the same call of other strides may be another view, or none
    if not views:
        if result is not source or (where != ANYWHERE and not _lies(source, where)):
            return None
        return ViewChain((), where)
    outputs = result if type(result) is tuple else (result,)
    chained = len(outputs) == 1 and len(views) > 1
    if not chained and len(views) != len(outputs):
        return None
    found: list[ViewPlan] = []
    before = source
    for number, (primitive, shown, values, made) in enumerate(views):
        if shown is not before or not (chained or made is outputs[number]):
            return None
        other = None if made._key is shown._key else made._key
        plan = ViewPlan(primitive, values, shown._shape, made._shape, other)
        # The op may ask more of memory than the view that it ends in.
        if where != ANYWHERE and not number:
            plan.where = max(plan.where, where)
        if plan.where == AT_START and not _lies(shown, AT_START):
            return None
        if plan.where != ANYWHERE and (number or type(result) is tuple):
            return None  # where a view lies does not follow from where its source does
        found.append(plan)
        if chained:
            before = made
    if chained:
        return ViewChain(tuple(found), found[0].where) if before is result else None
    if type(result) is not tuple:
        return found[0]
    plans = ViewPlans(tuple(found))
    if source._state and _tracked(source):
        _plan_together(plans, together, source, outputs)
    return plans


def _plan_together(plans: ViewPlans, together: Any, source: Any, outputs: tuple[Any, ...]) -> None:
    """Note in a plan how several views are recorded, if that is as one node."""
    plans.separate = True
    if together is None:
        return
    op, values, recorded = together
    alike = len(recorded) == len(outputs) > 1
    if alike and values[0] is source and all(map(operator.is_, recorded, outputs)):
        plans.separate = False
        plans.op = op
        plans.values = tuple([tuple(v) if type(v) is list else v for v in values[1:]])
