"""Groups of steps of a program that hang together, with nothing else between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import prod

from tensorplug.core.plugins.fusers import FusionProgram, Region


@dataclass(eq=False)
class StepGroup:
    """Steps that could be one region.

    Attributes
    ----------
    steps : set of int
        Their numbers.
    inputs, made : set of int
        The places of arrays that go in, and that they make.
    before, after : int
        As bits, the steps that they depend on, and that depend on them.
    """

    steps: set[int]
    inputs: set[int]
    made: set[int]
    before: int
    after: int

    def outputs(self, program: FusionProgram) -> list[int]:
        """Return the places of what is needed outside."""
        return [
            place
            for place in sorted(self.made)
            if place in program.results or not self.steps.issuperset(program.users(place))
        ]


def step_groups(
    program: FusionProgram,
    numbers: Iterable[int],
    joins: Callable[[int, int], bool],
    most_steps: int,
    most_arrays: int,
    constants: bool = True,
    siblings: bool = False,
) -> list[StepGroup]:
    """Return steps in groups, as large as can be.

    Parameters
    ----------
    program : FusionProgram
    numbers : iterable of int
        The steps, in order.
    joins : callable
        ``joins(place, number)`` says whether a step may be in one group with what makes its argument, or with
        what takes it, too.
    most_steps, most_arrays : int
        How many steps a group may have, and how many arrays that go in or come out.
    constants : bool
        Whether constants count among these.
    siblings : bool
        Whether steps that take the same array are put together, too, so that it is read once.

    Examples
    --------
    >>> from tensorplug.plugin import FusionStep, Operand
    >>> def step(op, into, out):
    ...     return FusionStep(op, None, (Operand(into),), (into,), (out,), False)
    >>> program = FusionProgram(
    ...     [step("exp", 0, 1), step("sum", 1, 2), step("neg", 1, 3)], [], frozenset({2, 3})
    ... )
    >>> (group,) = step_groups(program, [0, 2], lambda place, number: True, 8, 8)
    >>> group.steps, group.inputs, group.outputs(program)
    ({0, 2}, {0}, [1, 3])
    """
    before, after = _relations(program)
    group_of: dict[int, StepGroup] = {}
    users: dict[int, int] = {}  # by place: the last step that took an array
    for number in numbers:
        step = program.steps[number]
        assert step is not None
        group = StepGroup(
            {number}, set(step.inputs), set(step.outputs), before[number], after[number]
        )
        for place in step.inputs:
            neighbours = [program.maker(place)]
            if siblings and users.get(place) in group_of and joins(place, users[place]):
                neighbours.append(users[place])
            users[place] = number
            for neighbour in neighbours:
                other = None if neighbour is None else group_of.get(neighbour)
                if other is None or other is group or not joins(place, number):
                    continue
                joined = _joined(other, group)
                if joined is not None and len(joined.steps) <= most_steps:
                    going_in = [
                        p for p in joined.inputs if constants or not program.arrays[p].constant
                    ]
                    ends = len(going_in) + len(joined.outputs(program))
                    group = joined if ends <= most_arrays else group
        for member in group.steps:
            group_of[member] = group
    return list(dict.fromkeys(group_of.values()))


def pointwise_regions(
    program: FusionProgram, numbers: Iterable[int], most_steps: int, most_arrays: int
) -> Iterable[Region]:
    """Return regions of pointwise steps: at least two each, whose results have one shape.

    Parameters
    ----------
    program : FusionProgram
    numbers : iterable of int
        The pointwise steps, in order.
    most_steps, most_arrays : int
        How many steps a region may have, and how many arrays that go in or come out.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.plugin import ArrayFacts, FusionStep, Operand
    >>> def step(op, into, out):
    ...     return FusionStep(op, None, (Operand(into),), (into,), (out,), False)
    >>> facts = [ArrayFacts((4,), (1,), tp.float32, False)] * 3
    >>> program = FusionProgram([step("exp", 0, 1), step("neg", 1, 2)], facts, frozenset({2}))
    >>> list(pointwise_regions(program, [0, 1], 8, 8))
    [Region(steps=(0, 1), gain=33.0)]
    """
    facts = program.arrays

    def joins(place: int, number: int) -> bool:
        step = program.steps[number]
        assert step is not None
        return facts[place].shape == facts[step.outputs[0]].shape

    for group in step_groups(program, numbers, joins, most_steps, most_arrays, siblings=True):
        if len(group.steps) > 1:
            between = [facts[p] for p in group.made.difference(group.outputs(program))]
            saved = sum([prod(array.shape) * array.dtype.itemsize for array in between])
            yield Region(tuple(sorted(group.steps)), 2.0 * saved + 1.0)


def _relations(program: FusionProgram) -> tuple[list[int], list[int]]:
    """Return which steps each one depends on, and which depend on it, as bits."""
    before = [0] * len(program.steps)
    after = [0] * len(program.steps)
    for number, step in enumerate(program.steps):
        for place in () if step is None else step.inputs:
            maker = program.maker(place)
            if maker is not None:
                before[number] |= before[maker] | 1 << maker
    for number in range(len(program.steps) - 1, -1, -1):
        step = program.steps[number]
        for place in () if step is None else step.outputs:
            for user in program.users(place):
                after[number] |= after[user] | 1 << user
    return before, after


def _joined(group: StepGroup, other: StepGroup) -> StepGroup | None:
    """Return two groups as one, unless a step lies between them."""
    steps = group.steps | other.steps
    before, after = group.before | other.before, group.after | other.after
    if before & after & ~sum([1 << number for number in steps]):
        return None
    made = group.made | other.made
    return StepGroup(steps, (group.inputs | other.inputs) - made, made, before, after)


def is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Return whether elements lie without gaps, in whatever order of the dimensions.

    Examples
    --------
    >>> is_dense((2, 3), (1, 2)), is_dense((2, 3), (4, 1))
    (True, False)
    """
    step = 1
    for size, stride in sorted(
        zip(shape, strides, strict=True), key=lambda pair: (pair[1], pair[0])
    ):
        if size == 0:
            return True
        if size != 1:
            if stride != step:
                return False
            step *= size
    return True
