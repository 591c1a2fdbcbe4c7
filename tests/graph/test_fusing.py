"""Regions that become one step each: what goes in, what comes out, and that none waits for another."""

import random

import pytest

from tensorplug.graph.fusing import _Flow, _ordered
from tensorplug.graph.program import Program
from tensorplug.graph.steps import CallStep


class Plain:
    """A step that a fuser may take."""

    def __init__(self, taken, out):
        self.taken, self.out = taken, out

    def places(self):
        return self.taken


class Drawing(Plain, CallStep):
    """A step that keeps its turn."""


def drawn_program(drawn):
    program = Program()
    made = [0, 1]
    for number in range(drawn.randrange(4, 14)):
        out = [10 + 2 * number + extra for extra in range(drawn.randrange(1, 3))]
        taken = drawn.choices(made, k=drawn.randrange(4))
        kind = Drawing if drawn.random() < 0.2 else Plain
        program.steps.append(kind(taken, out))
        made += out
    program.outputs = drawn.choices(made, k=2)
    return program


def expected(program, numbers):
    """Return what the definition says: ends, or None if the steps then cannot be put in order."""
    inside = [program.steps[number] for number in numbers]
    made = [place for step in inside for place in step.out]
    rest = [step for step in program.steps if step is not None and step not in inside]
    used = {place for step in rest for place in step.places()}.union(program.outputs)
    inputs = dict.fromkeys([p for step in inside for p in step.places() if p not in made])
    outputs = [place for place in made if place in used]
    steps: list = [*program.steps]
    for number in numbers:
        steps[number] = None
    steps[numbers[-1]] = Plain(list(inputs), outputs)
    try:
        _ordered([step for step in steps if step is not None])
    except AssertionError:
        return None
    return list(inputs), outputs


@pytest.mark.parametrize("seed", range(300))
def test_drawn_regions(seed):
    drawn = random.Random(seed)
    program = drawn_program(drawn)
    flow = _Flow(program)
    left = {n for n, step in enumerate(program.steps) if not isinstance(step, CallStep)}
    while left:
        numbers = sorted(drawn.sample(sorted(left), min(len(left), drawn.randrange(1, 4))))
        found = flow.ends(numbers)
        wanted = expected(program, numbers)
        assert found == wanted
        left.difference_update(numbers[:1] if found is None else numbers)
        if found is not None:
            for number in numbers:
                program.steps[number] = None
            program.steps[numbers[-1]] = Plain(*found)
            flow.join(numbers, *found)
