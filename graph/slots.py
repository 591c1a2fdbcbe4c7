"""Attributes of a program's state that the program sets anew in each call: what a network remembers.

Objects of state are known by identity, and by what they hold. One that a program sets to other tensors at
each call would make another graph each time. Such an attribute counts by contents instead, like an argument:
what it holds goes into the key of a call and its tensors into the graph, and after each run it is set to
what the program would have set it to.
"""

from __future__ import annotations

from typing import Any

from tensorplug.autograd.transforms.pytree import tree_leaves
from tensorplug.core.tensor.base import TensorBase

from .comparing import alike
from .contents import halves
from .records import Record

__all__ = ["MOST", "Attribute", "attributes_set"]

#: How many attributes may count by contents.
MOST = 64


class Attribute:
    """An attribute of an object, in the table of all that the object has."""

    __slots__ = ("name", "table")

    def __init__(self, table: dict[str, Any], name: str) -> None:
        self.table = table
        self.name = name

    def is_same(self, other: Attribute) -> bool:
        """Return whether another one is of the same object and name."""
        return self.table is other.table and self.name == other.name


def attributes_set(containers: list[Record], tables: set[int]) -> list[Attribute]:
    """Return the attributes that hold other tensors than they did; none if other containers changed, too.

    The records of their tables then tell what these hold now.
    """
    found: list[Attribute] = []
    for number, (table, read, held, label) in enumerate(containers):
        now = read(table)
        if alike(now, held):
            continue
        (names, values), (names_before, before) = halves(now), halves(held)
        if id(table) not in tables or names != names_before:
            return []
        for name, value, old in zip(names, values, before, strict=True):
            if not alike([value], [old]):
                if not (_has_tensors(value) or _has_tensors(old)):
                    return []
                found.append(Attribute(table, name))
        containers[number] = (table, read, now, label)
    return found


def _has_tensors(value: Any) -> bool:
    return any([isinstance(leaf, TensorBase) for leaf in tree_leaves(value)])
