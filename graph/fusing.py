"""Fusion: parts of programs run as one call each, by what the plugins of their device bring.

The fusers name regions; here is seen to it that a region can run in one go, that its steps run by
themselves where it fails, and that each step is in one region at most.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import Any

from tensorplug.core.plugins import fusers, manager
from tensorplug.core.plugins.fusers import (
    FUSED,
    ArrayFacts,
    Fuser,
    FusionProgram,
    FusionStep,
    Operand,
)

from .program import Program
from .steps import CallStep, FusedStep, KernelStep, Step

__all__ = ["fuse"]


def fuse(
    program: Program,
    arrays: Sequence[Any],
    strides: Sequence[Any],
    state: Iterable[int],
    mode: str,
) -> set[int]:
    """Put fused steps in the place of others; return the places of the state whose values are in them.

    Parameters
    ----------
    program : Program
        Is changed.
    arrays : sequence of array
        By place, what the program made when it was traced.
    strides : sequence of (tuple, tuple)
        Their shapes and strides.
    state : iterable of int
        The places of constants, and of state.
    mode : str
        What `tp.compile` was told.
    """
    read: set[int] = set()
    types = {step.key.device.type for step in program.steps if isinstance(step, KernelStep)}
    for type_ in types:
        for fuser, record in manager.fusers_of(type_):
            steps = program.steps.copy()
            try:
                shown = _shown(program, type_, arrays, strides, frozenset(state), mode)
                _ask(fuser, record.label, shown, program, arrays, read)
            except Exception as error:
                fusers.quarantine(fuser, record.label, error)
            if fusers.is_quarantined(fuser):
                program.steps = steps
    return read


def _ask(
    fuser: Fuser,
    plugin: str,
    shown: FusionProgram,
    program: Program,
    arrays: Sequence[Any],
    read: set[int],
) -> None:
    flow = _Flow(program)
    for region in sorted(fuser.regions(shown), key=lambda region: -region.gain):
        numbers = sorted(set(region.steps))
        if not numbers or not shown.free.issuperset(numbers):
            continue
        ends = flow.ends(numbers)
        if (
            ends is None or not ends[1]
        ):  # of a loss whose gradient is all that is asked for, nothing comes out
            continue
        inputs, outputs = ends
        shown.read.clear()
        call = fuser.compile(shown, region, tuple(inputs), tuple(outputs))
        if call is None:
            continue
        steps: Any = [program.steps[number] for number in numbers]
        step = FusedStep(fuser, plugin, call, steps, inputs, outputs)
        if not step.fits(arrays, program.keys):
            return
        read |= shown.read
        for number in numbers:
            program.steps[number] = None  # type: ignore[call-overload]
        program.steps[numbers[-1]] = step
        flow.join(numbers, inputs, outputs)
        shown.free.difference_update(numbers)
    left: list[Any] = [*program.steps]
    program.steps = _ordered([step for step in left if step is not None])


def _shown(
    program: Program,
    type_: str,
    arrays: Sequence[Any],
    strides: Sequence[Any],
    state: frozenset[int],
    mode: str,
) -> FusionProgram:
    """Return the program as fusers see it."""
    steps = [_step(step, type_) for step in program.steps]
    facts = [
        ArrayFacts(tuple(shape), tuple(steps_), key.dtype, place in state)
        for place, ((shape, steps_), key) in enumerate(zip(strides, program.keys, strict=True))
    ]
    values = {place: arrays[place] for place in state}
    shown = FusionProgram(steps, facts, frozenset(program.outputs), values, mode=mode)
    for step, known in zip(program.steps, steps, strict=True):
        if known is None:  # what others use has to be made, too
            shown.results |= frozenset(step.places())
    return shown


def _step(step: Step, type_: str) -> FusionStep | None:
    if isinstance(step, FusedStep):
        if step.call is None or step.fuser.device_type != type_:
            return None
        operands = [Operand(place) for place in step.inputs]
        return FusionStep(FUSED, step.call, (operands,), tuple(step.inputs), tuple(step.out), False)
    if not isinstance(step, KernelStep) or step.key.device.type != type_:
        return None
    arguments = list(step.template)
    for index, place in step.slots:
        if type(place) is int:
            arguments[index] = Operand(place)
        else:
            arguments[index] = [None if p is None else Operand(p) for p in place]
    op = step.op
    return FusionStep(
        op.name,
        step.key.kernels[op.index],
        tuple(arguments),
        tuple(dict.fromkeys(step.places())),
        tuple(step.out),
        bool(op.view or op.layout or op.returns_argument),
    )


class _Flow:
    """Which steps of a program make and use its places, while some of them become one."""

    def __init__(self, program: Program) -> None:
        self.steps: list[Any] = program.steps
        self.results = set(program.outputs)
        self.makers: dict[int, int] = {}
        self.users: dict[int, set[int]] = {}
        # Of calls that draw or write the one before, which has its turn first, and the one after.
        self.before: dict[int, int] = {}
        self.after: dict[int, int] = {}
        # Of each step that last one, as they stood at first, of all that must have run before it, and itself.
        self.latest = list(range(len(self.steps)))
        last: int | None = None
        for number, step in enumerate(self.steps):
            self.makers.update(dict.fromkeys(step.out, number))
            for place in step.places():
                self.users.setdefault(place, set()).add(number)
            if isinstance(step, CallStep):
                if last is not None:
                    self.before[number], self.after[last] = last, number
                last = number

    def ends(self, numbers: list[int]) -> tuple[list[int], list[int]] | None:
        """Return the places that go into steps and come out; None if another step lies between them."""
        inside = set(numbers)
        made = [place for number in numbers for place in self.steps[number].out]
        own = set(made)
        taken = [place for number in numbers for place in self.steps[number].places()]
        inputs = list(dict.fromkeys([place for place in taken if place not in own]))
        # What the region needs must not depend on it. What waits only for steps before all of it does not.
        todo = [self.makers[place] for place in inputs if place in self.makers]
        seen: set[int] = set()
        while todo:
            number = todo.pop()
            if number in inside:
                return None
            if self.latest[number] < numbers[0] or number in seen:
                continue
            seen.add(number)
            todo += [self.makers[p] for p in self.steps[number].places() if p in self.makers]
            if number in self.before:
                todo.append(self.before[number])
        outputs = [
            place
            for place in made
            if place in self.results or not self.users.get(place, inside) <= inside
        ]
        return inputs, outputs

    def join(self, numbers: list[int], inputs: list[int], outputs: list[int]) -> None:
        """Have several steps be one, in the place of the last of them."""
        inside, last = set(numbers), numbers[-1]
        for place in inputs:
            self.users[place] -= inside
            self.users[place].add(last)
        for place in outputs:
            self.makers[place] = last
            self.users.get(place, set()).difference_update(inside)
        before = [self.latest[self.makers[place]] for place in inputs if place in self.makers]
        self.latest[last] = max([last, *before])
        todo = [last]
        while todo:
            number = todo.pop()
            users = [user for p in self.steps[number].out for user in self.users.get(p, ())]
            users += [self.after[number]] if number in self.after else []
            for user in users:
                if self.latest[user] < self.latest[number]:
                    self.latest[user] = self.latest[number]
                    todo.append(user)


def _ordered(steps: Sequence[Any]) -> list[Any]:
    """Return steps in an order in which each has its arguments; what draws or writes keeps its turn."""
    makers = {place: number for number, step in enumerate(steps) for place in step.out}
    waits: list[set[int]] = []
    last: int | None = None
    for number, step in enumerate(steps):
        needed = {makers[place] for place in step.places() if place in makers} - {number}
        if isinstance(step, CallStep):
            if last is not None:
                needed.add(last)
            last = number
        waits.append(needed)
    users: dict[int, list[int]] = {}
    for number, needed in enumerate(waits):
        for other in needed:
            users.setdefault(other, []).append(number)
    ready = [number for number, needed in enumerate(waits) if not needed]
    heapq.heapify(ready)
    found: list[Any] = []
    while ready:
        number = heapq.heappop(ready)
        found.append(steps[number])
        for user in users.get(number, ()):
            waits[user].discard(number)
            if not waits[user]:
                heapq.heappush(ready, user)
    assert len(found) == len(steps), "regions that wait for each other"
    return found
