"""Containers of every kind as arguments and results of compiled programs: as they are, and nested."""

import enum
import itertools
import types
import typing
from collections import OrderedDict, defaultdict, deque

import pytest

import tensorplug as tp


class Pair(typing.NamedTuple):
    first: object
    second: object
    scale = 2.0


class Kind(enum.Enum):
    ONE = 1


#: Of two items.
KINDS = {
    "tuple": lambda a, b: (a, b),
    "named tuple": Pair,
    "list": lambda a, b: [a, b],
    "dict": lambda a, b: {"a": a, "b": b},
    "ordered": lambda a, b: OrderedDict(a=a, b=b),
    "default": lambda a, b: defaultdict(list, a=a, b=b),
    "deque": lambda a, b: deque((a, b)),
    "short deque": lambda a, b: deque((a, b), 2),
    "namespace": lambda a, b: types.SimpleNamespace(a=a, b=b),
    "set": lambda a, b: {1, 2},
    "frozen set": lambda a, b: frozenset((1, 2)),
    "size": lambda a, b: tp.Size((2, 3)),
    "sizes": lambda a, b: (a.shape, tp.ones(2, 3).mul(2).shape, b),
    "range": lambda a, b: range(2, 5),
    "enum": lambda a, b: (a, Kind.ONE),
    "struct": lambda a, b: tp.max(tp.stack([tp.as_tensor(a), tp.as_tensor(a)]), 0),
}


def shown(value):
    """Return a value, its classes and those of what is in it, as plain tuples."""
    if isinstance(value, tp.Tensor):
        return type(value), value.shape, value.tolist()
    if isinstance(value, types.SimpleNamespace):
        return type(value), shown(vars(value))
    if isinstance(value, dict):
        factory = getattr(value, "default_factory", None)
        return type(value), factory, [(name, shown(item)) for name, item in value.items()]
    if isinstance(value, (tuple, list, deque)):
        return type(value), getattr(value, "maxlen", None), [shown(item) for item in value]
    return type(value), value


def first_tensor(value):
    """Return the sum of the tensors in a value."""
    if isinstance(value, tp.Tensor):
        return value.sum()
    if isinstance(value, types.SimpleNamespace):
        return first_tensor(vars(value))
    items = value.values() if isinstance(value, dict) else value
    if isinstance(items, str) or not hasattr(items, "__iter__"):
        return 0
    return sum([first_tensor(item) for item in items])


def made(outer, inner, x):
    """Return a new container in another one."""
    return KINDS[outer](x * 2, KINDS[inner](x + 1, 3) if inner else x + 1)


#: Whose calls stay eager, and for whom it is so as arguments or results alone.
EAGER_RESULTS = ("namespace", "set", "frozen set", "range", "enum")
EAGER_ARGUMENTS = ("default", "deque", "short deque", "set", "frozen set")
NESTED = [*itertools.product(KINDS, [None, *KINDS])]


@pytest.mark.parametrize(("outer", "inner"), NESTED)
def test_results(outer, inner):
    def program(x):
        return made(outer, inner, x)

    compiled = tp.compile(program)
    for number in (1, 2, 3):
        x = tp.full((2, 3), float(number))
        assert shown(compiled(x)) == shown(program(x))
    if outer not in EAGER_RESULTS and inner not in EAGER_RESULTS:
        assert compiled.explain().calls, compiled.explain()


@pytest.mark.parametrize(("outer", "inner"), NESTED)
def test_arguments(outer, inner):
    def program(x, given):
        return x + first_tensor(given) + x

    compiled = tp.compile(program)
    for number in range(8):  # what is made anew counts by contents from the third call on
        x = tp.full((2, 3), float(number))
        given = made(outer, inner, x)
        assert shown(compiled(x, given)) == shown(program(x, given))
    if outer not in EAGER_ARGUMENTS and inner not in EAGER_ARGUMENTS:
        assert compiled.explain().calls, compiled.explain()


@pytest.mark.parametrize("kind", KINDS)
def test_changes_of_what_is_given(kind):
    def program(x, table):
        table["new"] = KINDS[kind](x * 2, 1)
        return x * 3

    compiled = tp.compile(program)
    for number in range(6):
        x = tp.full((2, 3), float(number))
        now, held = {}, {}
        compiled(x, now)
        program(x, held)
        assert shown(now) == shown(held)


def test_attributes_of_the_class_of_a_named_tuple(monkeypatch):
    def program(x, pair):
        return x * pair.scale + pair.first

    compiled = tp.compile(program)
    for scale in (2.0, 2.0, 3.0, 3.0, 2.0):
        monkeypatch.setattr(Pair, "scale", scale)
        x = tp.ones(2)
        assert compiled(x, Pair(x, 1)).tolist() == program(x, Pair(x, 1)).tolist()
    assert compiled.explain().calls


def test_equal_ranges_that_begin_elsewhere():
    def program(x, table):
        table["seen"] = 1
        return x * table["range"].start

    compiled = tp.compile(program)
    for start in (0, 1, 2, 3, 3, 0, 0, 5):
        given = {"range": range(start, start)}
        assert compiled(tp.ones(2), given).tolist() == [start, start]
