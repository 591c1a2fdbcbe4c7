"""Objects and containers that compiled programs are given: what these read of them, and what they change.

Programs of drawn steps read and change what they are given, which stays, or is made anew for each call, or is
state as well. All of it, which objects are one, the order of attributes, and results are compared with the
program as it is: 40 programs; with TENSORPLUG_FUZZ in the environment as many as that says.
"""

import dataclasses
import os
import random
import types
import typing

import pytest

import tensorplug as tp

COUNT = int(os.environ.get("TENSORPLUG_FUZZ", "40"))


class Node:
    def __init__(self, value):
        self.value = value
        self.hits = 0

    def scaled(self, x):
        self.hits = 1 - self.hits
        return x * self.value


@dataclasses.dataclass
class Batch:
    keys: typing.Any
    other: Node
    parts: list
    table: dict
    count: int = 0
    flag: bool = False
    pair: tuple = ()
    unread: int = 0


@dataclasses.dataclass(slots=True)
class Slotted:
    keys: typing.Any
    other: Node
    parts: list
    table: dict
    count: int = 0
    flag: bool = False
    pair: tuple = ()
    unread: int = 0
    extra: typing.Any = None


registry = []


def scaled(root, x):
    return root.other.scaled(x)


def of_parts(root, x):
    if not root.parts:
        return x
    root.parts[-1].hits = 1
    x = x + sum([part.hits * number for number, part in enumerate([root.other, *root.parts])])
    root.parts[-1].hits = 0
    return x


def read(root, x):
    return x * root.other.value + len(root.parts)


def grown(root, x):
    root.keys = x if root.keys is None or len(root.keys) > 4 else tp.cat([root.keys, x])
    return root.keys.sum() + x


def counted(root, x):
    root.count += 1
    return x * root.count


def cycled(root, x):
    root.count = (root.count + 1) % 3
    return x * root.count + 1


def turned(root, x):
    root.flag = not root.flag
    return x + root.flag


def appended(root, x):
    root.parts.append(Node(x * 2))
    if len(root.parts) > 3:
        root.parts.pop(0)
    return x + 1


def reversed_parts(root, x):
    root.parts.reverse()
    return x


def extended(root, x):
    root.parts[:] = [*root.parts[:1], root.other]
    return x


def emptied(root, x):
    root.parts.clear()
    return x


def shared(root, x):
    root.other.value = root.keys if root.keys is not None and len(root.keys) == 1 else x + 2
    return x


def put(root, x):
    root.table["a"] = x + 1
    root.table["b"] = root.other
    return x


def taken(root, x):
    found = root.table.pop("a", None)
    return x if found is None else x * found


def another(root, x):
    root.other = Node(x - 1)
    return x


def same_tensor(root, x):
    root.other.value = x
    return x


def switched(root, x):
    if getattr(root, "extra", None) is None:
        root.extra = x.sum()
    else:
        del root.extra
    return x


def in_place(root, x):
    root.other.value.mul_(0.5).add_(x.sum())
    return x


def in_a_circle(root, x):
    root.other.owner = root
    return x


def in_a_pair(root, x):
    root.pair = (x, root.other, [root.count])
    return x


def replaced(root, x):
    root.parts = [root.other, Node(x)]
    return x


def named(root, x):
    setattr(root, "fla" + "g", not root.flag)
    return x * (2 if root.flag else 3)


def registered(root, x):
    return x + len(registry) + (registry[-1] is root if registry else 0)


def beside_state(root, x):
    x = x * (1 + sum([other.count for other in registry]))
    root.count = 1 - root.count
    return x + sum([other.count for other in registry])


STEPS = [
    scaled, of_parts, read, grown, counted, cycled, turned, appended, reversed_parts, extended, emptied,
    shared, put, taken, another, same_tensor, switched, in_place, in_a_circle, in_a_pair, beside_state,
    replaced, named, registered,
]  # fmt: skip
KINDS = [Batch, Slotted, types.SimpleNamespace]
LIVES = ["stays", "new", "turns", "state at last"]


def made(kind, number):
    first, second = (Node(tp.full((1,), number + 1.0)) for _ in range(2))
    parts = [first, second, first if number % 3 else second][: number % 5 + 1]
    fields = {"keys": None, "other": first, "parts": parts, "table": {}, "count": number % 2}
    return kind(**fields, flag=False, pair=(), unread=number)


def shown(value, known):
    """Return a structure with which objects are one, and the order of names."""
    if isinstance(value, (int, float, str, type(None), type)):
        return repr(value)
    if isinstance(value, tuple):
        return [shown(item, known) for item in value]
    if id(value) in known:
        return ("again", known[id(value)][0])
    known[id(value)] = len(known), value
    if isinstance(value, tp.Tensor):
        return ("tensor", value.tolist(), value.requires_grad)
    if isinstance(value, list):
        return [shown(item, known) for item in value]
    if isinstance(value, dict):
        return [(name, shown(item, known)) for name, item in value.items()]
    slots = getattr(type(value), "__slots__", ())
    held = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    return type(value).__name__, shown(held | getattr(value, "__dict__", {}), known)


def programs(seed):
    generator = random.Random(seed)
    steps = generator.sample(STEPS, generator.choice([1, 1, 2, 2, 3, 4, 6]))
    result = generator.choice(["x", "root", "part", "all"])
    beside = generator.choice([False, False, True])

    def program(x, root, others=None):
        for step in steps:
            x = step(root, x)
        if others is not None:
            others.append(x)
        if result == "root":
            return x, root
        if result == "part":
            return root.other, x
        return (x, root.parts, root.table, {"n": root}) if result == "all" else x

    kind, lives = generator.choice(KINDS), generator.choice(LIVES)
    if lives == LIVES[-1]:
        steps.append(beside_state)
    return program, kind, lives, beside, steps


def tensors_in(value, known):
    """Return the tensors of a structure."""
    if isinstance(value, tp.Tensor):
        return [] if id(value) in known else (known.add(id(value)), [value])[1]
    if id(value) in known or isinstance(value, (int, float, str, type(None))):
        return []
    known.add(id(value))
    items = value.values() if isinstance(value, dict) else value
    if not isinstance(value, (list, tuple, dict)):
        items = [
            getattr(value, name)
            for name in getattr(type(value), "__slots__", ())
            if hasattr(value, name)
        ]
        items += getattr(value, "__dict__", {}).values()
    return [tensor for item in items for tensor in tensors_in(item, known)]


def run(call, kind, lives, beside, in_state, recorded=False, calls=12):
    """Yield after each call all that can be seen of it."""
    registry.clear()
    held = [made(kind, number) for number in range(2)]
    if in_state:
        registry.append(held[0])
    for number in range(calls):
        if lives == "new":
            held = [made(kind, number)]
            if in_state and number % 3 == 0:
                registry[:] = held
        if lives == LIVES[-1]:
            held = [registry[0] if registry and number > 7 else made(kind, 0)]
        root = held[number % len(held) if lives == "turns" else 0]
        root.unread += 1
        x = tp.full((1,), float(number % 5 - 1), requires_grad=recorded)
        others = [1] if beside else None
        try:
            result = call(x, root, others)
            total = sum([t.sum() for t in tensors_in(result, set()) if t.requires_grad])
            if isinstance(total, tp.Tensor):
                total.backward(retain_graph=True)
        except (RuntimeError, TypeError) as error:
            result = type(error).__name__
        gradient = None if x.grad is None else f"{x.grad.item():.4g}"
        yield gradient, shown((result, root, others, x, registry), {})


@pytest.mark.parametrize("seed", range(COUNT))
@pytest.mark.parametrize("in_state", [False, True])
def test_random_programs(seed, in_state):
    program, kind, lives, beside, steps = programs(seed)
    recorded = (
        seed % 3 == 0 and in_place not in steps
    )  # what a write spoils is told at another time
    compiled = tp.compile(program)
    expected = list(run(program, kind, lives, beside, in_state, recorded))
    found = list(run(compiled, kind, lives, beside, in_state, recorded))
    for number, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        assert ours == theirs, (number, [step.__name__ for step in steps], kind.__name__, lives)
