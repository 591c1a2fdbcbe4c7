"""Views by ints, slices, None and Ellipsis, with a plan for each key that was met before.

A loop over positions meets new keys alone. A plan for each would cost more than the view, so after some in a
row only every so many calls look for one.
"""

from __future__ import annotations

from typing import Any

from ..dispatch import op_registry
from ..dispatch.call_cache import CallCache, store_plan
from ..dispatch.execution import show
from ..dispatch.keys import DispatchKey
from ..dispatch.state import dispatch_state
from ..dispatch.view_calls import follow
from ..dispatch.view_plans import RowPlans, ViewPlan
from .index_keys import WHOLE, bounded
from .shapes import Shape

BASIC_INDEX = op_registry.handle("basic_index")

_PLANS = CallCache()
_ROWS = CallCache()  # of ``tensor[int]``, with the plans of all ints
_ROWS_KEPT = 256
_NEW = 32  # keys in a row that were not met before, after which one in so many is looked for
_new_keys = 0  # in a row


def row(input: Any, position: int, shape: Shape) -> Any:
    """Return the view of one position of the first dimension."""
    if dispatch_state.layers_active or input._key.is_meta:
        return show(BASIC_INDEX, input, ((position,),), shape[1:])
    latest: Any = _ROWS.latest
    if (
        latest is None
        or latest.key is not input._key
        or (latest.given is not shape and latest.given != shape)
    ):
        key = (input._key, shape)
        latest = _ROWS.calls.get(key)
        if latest is None:
            latest = store_plan(_ROWS, key, RowPlans(input, min(shape[0], _ROWS_KEPT)))
        _ROWS.latest = latest
    rows = latest.rows
    if position < len(rows):
        plan = rows[position]
        if plan is not None:
            return follow(plan, input)
    values = ((position,),)
    result = show(BASIC_INDEX, input, values, shape[1:])
    if position < len(rows):
        rows[position] = ViewPlan(BASIC_INDEX, values, shape, shape[1:])
    return result


def show_basic(input: Any, key: tuple[Any, ...]) -> Any:
    """Return the view of a key of ints, slices, None and Ellipsis, or None for any other key."""
    global _new_keys
    tensor_key = input._key
    plan_key = None
    if not (dispatch_state.layers_active or tensor_key.is_meta):
        latest: Any = _PLANS.latest
        if (
            latest is not None
            and latest.key is tensor_key
            and (latest.given is input._shape or latest.given == input._shape)
            and _same_key(latest.first, key)
        ):
            return follow(latest, input)
        if _new_keys < _NEW or _new_keys % _NEW == 0:
            plan_key = _plan_key(tensor_key, input._shape, key)
            plan = None if plan_key is None else _PLANS.calls.get(plan_key)
            if plan is not None:
                _new_keys = 0
                _PLANS.latest = plan
                return follow(plan, input)
        _new_keys += 1
    shape = tuple(input._shape)
    ndim = len(shape)
    named = 0
    for item in key:
        if type(item) is int or type(item) is slice:
            named += 1
        elif item is not None and item is not Ellipsis:
            return None
    if named > ndim:
        return None
    basic: list[Any] = []
    sizes: list[Any] = []
    dim = 0
    used = 0  # how much of the key is not whole dimensions at its end
    for item in key:
        if type(item) is int:
            size = shape[dim]
            if not -size <= item < size:
                return None
            basic.append(item + size if item < 0 else item)
            dim += 1
        elif item is None:
            basic.append(None)
            sizes.append(1)
        elif item is Ellipsis:
            while named < ndim:  # a second Ellipsis stands for nothing
                basic.append(WHOLE)
                sizes.append(shape[dim])
                dim += 1
                named += 1
            continue
        else:
            size = shape[dim]
            found = bounded(item, size)
            basic.append(found)
            dim += 1
            if found is WHOLE:
                sizes.append(size)
                continue
            if found.step == 1:
                sizes.append(found.stop - found.start)
            else:
                sizes.append(len(range(found.start, found.stop, found.step)))
        used = len(basic)
    if used < len(basic):
        del basic[used:]
    values = (tuple(basic),)
    made = tuple(sizes) + shape[dim:]
    result = show(BASIC_INDEX, input, values, made)
    if plan_key is not None:
        plan = ViewPlan(BASIC_INDEX, values, shape, made)
        plan.note_call(input, ())
        plan.first = key
        _PLANS.latest = store_plan(_PLANS, plan_key, plan)
    return result


def _same_key(planned: tuple[Any, ...], key: tuple[Any, ...]) -> bool:
    """Return whether a key is the same as one of ints, slices of ints, None and Ellipsis."""
    if len(planned) != len(key):
        return False
    for index in range(len(key)):
        mine, given = planned[index], key[index]
        if mine is not given and (
            type(mine) is not type(given)
            or not (_same_slice(mine, given) if type(mine) is slice else mine == given)
        ):
            return False
    return True


def _same_slice(mine: Any, given: Any) -> bool:
    start, stop, step = mine.start, mine.stop, mine.step
    return (
        (start is given.start or (type(given.start) is type(start) and given.start == start))
        and (stop is given.stop or (type(given.stop) is type(stop) and given.stop == stop))
        and (step is given.step or (type(given.step) is type(step) and given.step == step))
    )


def _plan_key(tensor_key: DispatchKey, shape: Shape, key: tuple[Any, ...]) -> Any:
    """Return what plans of such views are known by, None if the key holds more than constants."""
    parts: list[Any] = [tensor_key, shape]
    for item in key:
        kind = type(item)
        if kind is slice:
            bounds = item
            start, stop, step = bounds.start, bounds.stop, bounds.step
            if (
                (start is not None and type(start) is not int)
                or (stop is not None and type(stop) is not int)
                or (step is not None and type(step) is not int)
            ):
                return None
            parts += (slice, start, stop, step)
        elif kind is int or item is None or item is Ellipsis:
            parts.append(item)
        else:
            return None
    return tuple(parts)
