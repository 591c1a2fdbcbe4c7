"""Whether state is as it was, by versions and identities, beside lists of all that it holds.

40 worlds of 60 writes at random; with TENSORPLUG_FUZZ in the environment as many as that says.
"""

import os
import random
import types
from collections import OrderedDict, defaultdict

import pytest

from tensorplug.graph import records
from tensorplug.graph.comparing import MISSING
from tensorplug.graph.state import State

COUNT = int(os.environ.get("TENSORPLUG_FUZZ", "40"))
STEPS = 60
NAMES = ("first", "second", "third")


class Base:
    """A class whose attributes are written, as are those of what is derived from it."""


class Table(dict):
    pass


class Slots:
    __slots__ = NAMES


def write_item(table, name, value, way):
    """Write an item of a mapping, or take it away."""
    if value is not MISSING:
        if way == 0:
            table[name] = value
        elif way == 1:
            table.update({name: value})
        elif way == 2:
            table |= {name: value}
        else:
            table.setdefault(name, value)
    elif way == 0:
        table.pop(name, None)
    elif way == 1 and name in table:
        del table[name]
    elif way == 2:
        table.clear()
    elif table:
        table.popitem()


def write_list(held, name, value, way):
    if value is MISSING and held:
        held.pop()
    elif way == 0 and held:
        held[0] = value
    elif way == 1:
        held[:] = [value, *held[1:]]
    elif len(held) < 4:
        held.append(value)


def write_set(held, name, value, way):
    if value is MISSING:
        held.clear()
    else:
        held.add(value)


def write_attribute(made, name, value, way):
    """Write an attribute of an object or class, or take it away."""
    if value is MISSING:
        if name in vars(made):
            delattr(made, name)
    elif way == 0:
        for _ in range(20):  # until Python runs the step that it has for this class
            made.first = value
    elif way == 1:
        setattr(made, name, value)
    elif isinstance(made, type):
        type.__setattr__(made, name if way == 2 else "__doc__", value)
    elif way == 2:
        object.__setattr__(made, name, value)
    elif way == 3:
        vars(made)[name] = value
    else:
        made.__dict__ = {**vars(made), name: value}


def write_slot(made, name, value, way):
    if value is not MISSING:
        setattr(made, name, value)
    elif hasattr(made, name):
        delattr(made, name)


def write_function(function, name, value, way):
    """Write what a function runs with: defaults, a variable of the function around it, attributes."""
    if way == 0:
        function.__defaults__ = (value,)
    elif way == 1:
        function.__closure__[0].cell_contents = value
    elif way == 2:
        function.__kwdefaults__ = None if value is MISSING else {name: value}
    elif value is not MISSING:
        setattr(function, name, value)
    elif name == "first":
        function.__dict__ = {}
    else:
        vars(function).pop(name, None)


def write_global(function, name, value, way):
    """Write a name of a function's module: the one that counts, or another."""
    if way == 0:
        function(value)
    else:
        function.__globals__["first" if way == 1 else "second"] = value


def held_by(value):
    """Return what an object holds."""
    if isinstance(value, (dict, types.MappingProxyType)):
        return [*value, *value.values()]
    if isinstance(value, (list, set)):
        return [*value]
    if isinstance(value, type):
        return [value.__bases__, *vars(value), *vars(value).values()]
    if isinstance(value, types.FunctionType):
        found = [value.__code__, value.__defaults__, value.__kwdefaults__]
        found += [cell.cell_contents for cell in value.__closure__ or ()]
        found += [value.__dict__] if vars(value) else []
        return [*found, *vars(value), *vars(value).values()]
    if isinstance(value, Slots):
        return [getattr(value, name, MISSING) for name in NAMES]
    return [type(value), vars(value), *vars(value), *vars(value).values()]


def world():
    """Return objects of all kinds that are compared, each with what writes to it."""

    class Root(Base):
        first = 0

    class Derived(Root):
        second = 0

    def around(variable):
        def function(x=None, *, y=None):
            return variable

        return function

    names = {"__name__": "somewhere"}
    exec("def put(value):\n    global first\n    first = value", names)
    made = Derived()
    made.first = None
    table = {"third": None}
    return [
        ({}, write_item), (OrderedDict(), write_item), (Table(), write_item), (defaultdict(int), write_item),
        (types.MappingProxyType(table), lambda _, *how: write_item(table, *how)),
        ([None], write_list), (set(), write_set), (made, write_attribute), (Derived(), write_attribute),
        (Slots(), write_slot), (Root, write_attribute), (Derived, write_attribute),
        (around(None), write_function), (around(1.0), write_function), (names["put"], write_global),
    ]  # fmt: skip


def of_all(objects):
    """Return what all objects hold, and the name that counts."""
    held = [held_by(value) for value, _ in objects]
    return [*held, [objects[-1][0].__globals__.get("first", MISSING)]]


def is_one(now, held):
    """Return whether what was found is the same, or an equal number or text."""
    return now is held or (type(now) is type(held) and type(now) in (float, str) and now == held)


def known(objects):
    """Return a state that knows what objects hold."""
    state = State()
    for value, _ in objects:
        state.add(value, "self")
    state.name(objects[-1][0].__globals__, "first")
    return state


def run(seed, count=STEPS):
    """Write at random; return how often that was a change."""
    draw = random.Random(seed)
    objects = world()
    values = [MISSING, MISSING, None, Base(), Base(), 1.0, float("1"), float("2"), ("a",)]
    state, held, changes = known(objects), of_all(objects), 0
    for step in range(count):
        if draw.random() < 0.7:  # or else versions are not known yet
            assert state.changed() == "", step
        value, write = draw.choice(objects)
        write(value, draw.choice(NAMES), draw.choice(values), draw.randrange(5))
        now = of_all(objects)
        same = [len(a) == len(b) and all(map(is_one, a, b)) for a, b in zip(now, held, strict=True)]
        for _ in range(draw.randint(1, 2)):
            assert (state.changed() == "") == all(same), (step, value, write)
        if not all(same):
            changes += 1
            state, held = known(objects), now
    return changes


@pytest.mark.parametrize("part", range(4))
def test_what_is_written_is_found(part):
    changes = sum([run(seed) for seed in range(part, COUNT, 4)])
    assert changes > COUNT * STEPS // 16  # of a fourth of all writes


def test_bases_of_a_class():
    class Root(Base):
        pass

    class Aside(Base):
        pass

    class Derived(Root):
        pass

    state = State()
    state.add(Derived, "self")
    for _ in range(3):
        assert state.changed() == ""
    Derived.__bases__ = (Aside,)
    assert state.changed()


def test_a_planted_fault_is_found(monkeypatch):
    monkeypatch.setattr(records, "of_class", lambda kind: [])
    monkeypatch.setattr("tensorplug.graph.state.of_class", lambda kind: [])
    with pytest.raises(AssertionError):
        test_what_is_written_is_found(0)
