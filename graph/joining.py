"""Joining: what is joined, turned and then copied into rows is joined in the order of the rows at once.

The gradient of a tensor that was taken apart, such as that of the queries, keys and values of an attention,
comes to such steps: one pass over memory in the place of two.
"""

from __future__ import annotations

from typing import Any

from tensorplug.core.dispatch.op_registry import handle
from tensorplug.core.tensor.base import new_tensor

from .steps import CallStep, KernelStep

__all__ = ["join_in_order"]

_STACK, _CAT = handle("stack"), handle("cat")
_PERMUTE, _CLONE = handle("permute"), handle("clone")


def join_in_order(tracer: Any) -> None:
    """Replace such steps of a program that is being lowered.

    Parameters
    ----------
    tracer : _Tracer
        Has noted all steps, none of which is fused yet.
    """
    program = tracer.program
    steps: list[Any] = program.steps
    makers = {place: step for step in steps for place in step.out}
    uses: dict[int, int] = {}
    for place in (*program.outputs, *[p for step in steps for p in step.places()]):
        uses[place] = uses.get(place, 0) + 1
    program.steps = done = []
    for step in steps:
        done.append(step)
        turned = _source(step, _CLONE, makers, uses)
        joined = _source(turned, _PERMUTE, makers, uses)
        if joined is None or joined.op not in (_STACK, _CAT):
            continue
        if turned not in done or joined not in done:
            continue
        others = done[done.index(joined) + 1 :]
        if any([isinstance(other, CallStep) for other in others]):
            continue  # which may write what is joined
        end = len(done)
        (made,) = step.out
        if _joined_again(tracer, joined, turned) == tracer.strides[made]:
            done[-1].out = step.out
            for gone in (step, turned, joined):
                done.remove(gone)
        else:
            del done[end:]


def _source(step: Any, op: Any, makers: dict[int, Any], uses: dict[int, int]) -> Any:
    """Return what makes the array that a step of an op takes, if it makes that for this step alone."""
    if not isinstance(step, KernelStep) or step.op is not op:
        return None
    _, place = step.slots[0]
    maker = makers.get(place)
    return maker if isinstance(maker, KernelStep) and uses[place] == 1 else None


def _joined_again(tracer: Any, joined: KernelStep, turned: KernelStep) -> Any:
    """Note the steps that turn each part and join them; return shape and strides of the result."""
    dims, dim = turned.template[1], joined.template[1]
    order = dims if joined.op is _CAT else [d - (d > dim) for d in dims if d != dim]
    parts = []
    for place in joined.places():
        key = tracer.program.keys[place]
        part = new_tensor(tracer.arrays[place], key, tracer.strides[place][0])
        parts.append(tracer.note(_PERMUTE, key, (part, tuple(order)), None))
    result = tracer.note(joined.op, joined.key, (parts, dims.index(dim)), None)
    return result._shape, joined.key.runtime.strides(result._array)
