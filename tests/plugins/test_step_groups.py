"""Groups of a program's steps hang together, and can run in one go."""

import pytest
from hypothesis import given, strategies as st

from tensorplug.plugin import FusionProgram, FusionStep, Operand, step_groups


def step(inputs, output):
    return FusionStep(
        "op", len, tuple(map(Operand, inputs)), tuple(dict.fromkeys(inputs)), (output,), False
    )


@st.composite
def programs(draw):
    """Return a program of three arguments, the steps that may be grouped, and which arrays may link them."""
    steps = []
    for number in range(draw(st.integers(1, 9))):
        places = st.lists(st.integers(0, 2 + number), min_size=1, max_size=3)
        steps.append(step(draw(places), 3 + number))
    results = draw(st.sets(st.integers(3, 2 + len(steps)), min_size=1))
    numbers = sorted(draw(st.sets(st.integers(0, len(steps) - 1))))
    links = draw(st.sets(st.integers(0, 2 + len(steps))))
    return FusionProgram(steps, [], frozenset(results)), numbers, links


def ends(program, steps):
    """Return what goes into steps and comes out of them, from the program alone."""
    made = {program.steps[n].outputs[0] for n in steps}
    taken = {place for n in steps for place in program.steps[n].inputs}
    others = {place for n, s in enumerate(program.steps) if n not in steps for place in s.inputs}
    return taken - made, {place for place in made if place in others or place in program.results}


def reaches(program, number):
    """Return the steps that depend on one."""
    found, places = set(), set(program.steps[number].outputs)
    for other in range(number + 1, len(program.steps)):
        if places.intersection(program.steps[other].inputs):
            found.add(other)
            places.update(program.steps[other].outputs)
    return found


@pytest.mark.parametrize("siblings", [False, True])
@given(programs(), st.integers(1, 6), st.integers(2, 8))
def test_groups_are_whole(siblings, case, most_steps, most_arrays):
    program, numbers, links = case
    groups = step_groups(
        program,
        numbers,
        lambda place, _: place in links,
        most_steps,
        most_arrays,
        siblings=siblings,
    )
    assert sorted([n for group in groups for n in group.steps]) == numbers
    for group in groups:
        inputs, outputs = ends(program, group.steps)
        assert group.inputs == inputs
        assert set(group.outputs(program)) == outputs
        if len(group.steps) > 1:
            assert len(group.steps) <= most_steps
            assert len(inputs) + len(outputs) <= most_arrays
        # What depends on one of its steps, and is needed by another, is in it.
        after = set().union(*[reaches(program, n) for n in group.steps])
        for between in after - group.steps:
            assert not reaches(program, between) & group.steps
        # Each step hangs together with the others by an array that may link them.
        linked = [min(group.steps)]
        for one in linked:
            linked += [
                other
                for other in sorted(group.steps.difference(linked))
                if shared(program.steps[one], program.steps[other], siblings) & links
            ]
        assert set(linked) == group.steps


def shared(one, other, siblings):
    """Return the places of arrays that go from one step to another, or into both."""
    found = {*one.outputs} & {*other.inputs} | {*other.outputs} & {*one.inputs}
    return found | ({*one.inputs} & {*other.inputs} if siblings else set())


@given(programs())
def test_what_takes_the_same_array_is_one_group(case):
    program, _, _ = case
    numbers = range(len(program.steps))
    groups = step_groups(program, numbers, lambda *_: True, 99, 99, siblings=True)
    group_of = {n: group for group in groups for n in group.steps}
    # Nothing that depends on these lies between them, where all steps may be joined.
    for first in numbers:
        for second in numbers:
            if set(program.steps[first].inputs) & set(program.steps[second].inputs):
                assert group_of[first] is group_of[second]
