"""What statements do with variables, as read off their text, beside what they do when they run.

Random statements run under a dictionary that notes which variables are read and stored; which ways are taken
is drawn anew for each run. What the text tells has to hold for all of them. (What is within functions and
comprehensions has no such dictionary: tests/graph/test_dividing.py has those.)
"""

import ast
import contextlib
import random
import textwrap

import pytest

from tensorplug.graph.flow import Flow

NAMES = "abcde"
PROGRAMS = 1200
RUNS = 8


class Writer:
    """Writes statements over a few variables; ``take()`` tells which way a run goes, ``fail()`` may raise."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def name(self):
        return self.random.choice(NAMES)

    def simple(self, looped):
        a, b, c = (self.name() for _ in range(3))
        return self.random.choice([
            f"{a} = {b}", f"{a} = {b} = {c}", f"{a}: int = {b}", f"{a}: int", f"{a} += {b}",
            f"{a}, {b} = {c}, {a}", f"*{a}, {b} = {c}, {c}", f"take() and ({a} := {b})", f"({a} := {b})",
            f"del {a}", f"del {a}", f"fail({a})", f"fail({a})",
            f"{a} = {b} if take() else {c}", f"[{a} for {a} in ({b}, {c})]",
            f"{a} = lambda {b}={c}: {b}", f"def {a}({b}={c}): return {b}", f"class {a}(type({b})): pass",
            *(["break", "continue"] if looped else []),
        ])  # fmt: skip

    def compound(self, depth, looped):
        a, b = self.name(), self.name()

        def block(in_loop=looped):
            return textwrap.indent(self.block(depth + 1, in_loop), "    ")

        match self.random.randrange(9):
            case 0:
                return f"if take({a}):\n{block()}"
            case 1:
                return f"if take({a}):\n{block()}\nelse:\n{block()}"
            case 2:
                return f"for {a} in range(take({b})):\n{block(True)}"
            case 3:
                return f"for {a} in range(2):\n{block(True)}\nelse:\n{block()}"
            case 4:
                return f"while take({a}):\n{block(True)}"
            case 5:
                return f"try:\n{block()}\nexcept ValueError as {a}:\n{block()}\nelse:\n{block()}"
            case 6:
                return f"try:\n{block()}\nfinally:\n{block()}"
            case 7:
                return f"with suppress(ValueError):\n{block()}"
            case _:
                return (
                    f"match ({a}, take()):\n    case ({b}, True) if take():\n"
                    f"{textwrap.indent(block(), '    ')}\n    case _:\n{textwrap.indent(block(), '    ')}"
                )

    def block(self, depth=0, looped=False):
        return "\n".join(
            self.compound(depth, looped)
            if depth < 3 and self.random.random() < 0.35
            else self.simple(looped)
            for _ in range(self.random.randint(1, 3))
        )


class Noting(dict):
    """The variables of a run, with what was read before the run gave it a value, stored, and has one."""

    def __init__(self):
        super().__init__(dict.fromkeys(NAMES, 0))
        self.read, self.stored, self.assigned = set(), set(), set()

    def __getitem__(self, name):
        value = super().__getitem__(name)
        if name not in self.assigned:
            self.read.add(name)
        return value

    def __setitem__(self, name, value):
        super().__setitem__(name, value)
        self.stored.add(name)
        self.assigned.add(name)

    def __delitem__(self, name):
        super().__delitem__(name)
        self.stored.add(name)
        self.assigned.discard(name)


def runs(text, seed):
    """Yield what runs of statements did with the variables, and whether they came to their end."""
    code = compile(f"from __future__ import annotations\n{text}", "statements", "exec")
    for number in range(RUNS):
        chance = random.Random(f"{seed} {number}")
        variables, left = Noting(), [30]

        def take(*_, chance=chance, left=left):
            left[0] -= 1
            return chance.random() < 0.5 and left[0] > 0

        def fail(*_, chance=chance):
            if chance.random() < 0.4:
                raise ValueError

        names = {"take": take, "fail": fail, "suppress": contextlib.suppress}
        try:
            exec(code, names, variables)
        except (ValueError, NameError, TypeError):
            ended = False
        else:
            ended = True
        yield variables, ended


@pytest.mark.parametrize("part", range(4))
def test_what_is_told_holds_for_every_run(part):
    ended_runs = read = 0
    for seed in range(part, PROGRAMS, 4):
        text = Writer(seed).block()
        flow = Flow(())
        for statement in ast.parse(text).body:
            flow.visit(statement)
        for seen, ended in runs(text, seed):
            own = set(NAMES)
            assert seen.read & own <= flow.read, text
            assert seen.stored & own <= flow.stored, text
            if ended:
                assert flow.assigned & own <= seen.assigned, text
                ended_runs += 1
            read += len(seen.read)
    assert ended_runs > 600
    assert read > 600
