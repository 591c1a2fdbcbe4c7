"""Random training programs give the same however they are run: compiled, in parts, saved and read.

This needs no other library. ``make fuzz`` runs ``TENSORPLUG_FUZZ`` programs.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable
from typing import Any

import pytest
from additions import PARAMETRIZED
from comparing import check, difference, outcome
from losses import JOINT
from optimizers import FOREACH, FUSED
from plans import Plan, drawn

import tensorplug as tp

COUNT = int(os.environ.get("TENSORPLUG_FUZZ", "8"))
#: Within vmap some results are views that may not be written to, and some ops save what they write to.
REFUSED = ("a view of a view that was not recorded", "modified by an inplace operation")
#: What several rows have a part in, or what writes to buffers within a transform.
STATISTICS = ("batch_norm", "instance_norm", "dropout")


def by_rows(plan: Plan) -> bool:
    """Tell whether the loss is the mean or the sum of the losses of the samples."""
    apart = plan.loss[0] not in JOINT and plan.loss[1] in ("mean", "sum")
    return (
        apart
        and not plan.has(*STATISTICS)
        and plan.addition != "spectral_norm"
        and not plan.penalty
    )


def computed_again(plan: Plan) -> bool:
    """Tell whether the network can be computed twice a step: no buffer follows what passes through it."""
    return not plan.has("batch_norm", "instance_norm") and plan.addition != "spectral_norm"


def transformable(plan: Plan) -> bool:
    """Tell whether gradients are those of the loss, and nothing is written or looked at on the way."""
    if plan.loss[0] == "gaussian":  # which looks whether variances are negative
        return False
    kept = plan.addition in (None, "frozen", "input_hook", "output_hook")
    return kept and not plan.has(*STATISTICS) and plan.forward == "call" and plan.parts == 1


def interruptible(plan: Plan) -> bool:
    """Tell whether another network can go on: hooks of tensors and gradients of zeros stay behind."""
    zeros = not plan.to_none and any(name == "freeze" for _, name in plan.events)
    return plan.addition not in ("gradient_hook", "accumulation_hook") and not zeros


def event(name: str) -> Callable[[Plan], dict[str, Any]]:
    """Return what adds an event to a program."""
    return lambda plan: {"events": (*plan.events, (2, name))}


def changed(**changes: Any) -> Callable[[Plan], dict[str, Any]]:
    """Return what changes fields of a program."""
    return lambda plan: changes


#: Which programs can be run in a way, and what it is in them.
WAYS: dict[str, tuple[Callable[[Plan], bool], Callable[[Plan], dict[str, Any]]]] = {
    "compiled": (lambda plan: plan.forward == "call", changed(compiled="network")),
    "compiled_step": (lambda plan: plan.forward == "call", changed(compiled="step")),
    "compiled_in_checkpoint": (
        lambda plan: plan.forward == "checkpoint", changed(compiled="network"),
    ),
    "checkpoint": (lambda plan: computed_again(plan), changed(forward="checkpoint")),
    "reentrant": (
        lambda plan: computed_again(plan) and not plan.penalty, changed(forward="reentrant"),
    ),
    "functional_call": (
        lambda plan: plan.addition not in PARAMETRIZED and plan.forward == "call",
        changed(forward="functional"),
    ),
    "func_grad": (lambda plan: transformable(plan) and not plan.penalty, changed(forward="func_grad")),
    "per_sample": (
        lambda plan: transformable(plan) and by_rows(plan) and not plan.has("recurrent"),
        changed(forward="per_sample"),
    ),
    "parts": (lambda plan: by_rows(plan) and plan.parts == 1, changed(parts=2)),
    "reloaded": (interruptible, event("reload")),
    "copied": (
        lambda plan: interruptible(plan) and plan.addition not in PARAMETRIZED, event("deepcopy"),
    ),
    "pickled": (lambda plan: interruptible(plan) and plan.addition is None, event("pickle")),
    "one_by_one": (lambda plan: plan.optimizer[0] in FOREACH, changed(stepping="for")),
    "foreach": (lambda plan: plan.optimizer[0] in FOREACH, changed(stepping="foreach")),
    "fused": (lambda plan: plan.optimizer[0] in FUSED, changed(stepping="fused")),
    "channels_last": (lambda plan: plan.images, changed(channels_last=True)),
}  # fmt: skip


def differs(way: str, plan: Plan) -> str:
    """Return in what a program differs when it is run in another way."""
    possible, changes = WAYS[way]
    if not possible(plan):
        return ""
    ours = outcome(tp, dataclasses.replace(plan, **changes(plan)))
    wanted = outcome(tp, plan)
    if isinstance(wanted, Exception):
        return ""
    if way == "per_sample" and isinstance(ours, Exception) and any(r in str(ours) for r in REFUSED):
        return ""
    return difference(ours, wanted, 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_way(way: str) -> None:
    done, seed = 0, 0
    while done < COUNT:
        plan = drawn(seed, dropout=True)
        seed += 1
        if WAYS[way][0](plan):
            done += 1
            check(plan, functools.partial(differs, way))
