"""Comparing what Python's objects hold with what they held: before each call of a captured program."""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

__all__ = [
    "MISSING",
    "Held",
    "alike",
    "attributes_of",
    "of_class",
    "version_of_class",
    "version_of_dict",
]

#: What a name stands for that is not there.
MISSING = object()

MAPPINGS = (dict, MappingProxyType)
#: Of these an equal one serves as well.
ATOMS: frozenset[Any] = frozenset((int, float, complex, bool, str, bytes, type(None), range))

#: What Python notes in a class for itself as the first object is copied: which slots copies take.
_NOTED = "__slotnames__"

#: Tell a number that changes whenever a class, one of its bases or a dictionary is written; 0 where it is not
#: known. Compiled, these read what Python's own caches go by, see comparing.pxd.
version_of_class: Callable[[Any], int]
version_of_dict: Callable[[Any], int]
#: Tells the dictionary of a function; None if it has none yet.
table_of_function: Callable[[Any], Any]
#: Tells whether a function has the code, the defaults and the attributes at a place of lists.
runs_same: Callable[..., bool]


class Held:
    """What objects held, in lists by place, so that one pass finds out whether they still do.

    Attributes
    ----------
    dicts, versions : list
        Dictionaries, and their versions.
    keys, items : list of list
        The keys and the values of each, :data:`MISSING` for those that may be any.
    containers, sizes, held : list
        Other mappings and containers, how many items each one had, and those one after another; of each
        mapping all keys, then all values.
    objects, classes : list
        Objects, and of which classes they were.
    kinds, kind_versions, bases, members : list
        Classes, their versions, what they were derived from, and the names and values of their attributes.
    functions, code, defaults, named, attributes : list
        Functions, their code, their defaults and those by name, their attributes, None if they had none.
    cells, contents : list
        Variables of functions around others, and what was in them.
    tables, table_versions, names, values : list
        Tables of modules and their versions, for each the names that count, and what these stood for.
    tensors, arrays, states : list
        Tensors, their arrays, and whether they require grad.
    """

    __slots__ = (
        "arrays", "attributes", "bases", "cells", "classes", "code", "containers", "contents",
        "defaults", "dicts", "functions", "held", "items", "keys", "kind_versions", "kinds", "members",
        "named", "names", "objects", "sizes", "states", "table_versions", "tables", "tensors", "values",
        "versions",
    )  # fmt: skip

    attributes: list[Any]
    dicts: list[Any]
    versions: list[int]
    held: list[Any]
    keys: list[list[Any]]
    kind_versions: list[int]
    members: list[list[Any]]
    table_versions: list[int]

    containers: list[Any]
    sizes: list[int]
    items: list[list[Any]]
    objects: list[Any]
    classes: list[Any]
    kinds: list[Any]
    bases: list[Any]
    functions: list[Any]
    code: list[Any]
    defaults: list[Any]
    named: list[Any]
    cells: list[Any]
    contents: list[Any]
    tables: list[Any]
    names: list[list[str]]
    values: list[list[Any]]
    tensors: list[Any]
    arrays: list[Any]
    states: list[int]

    def same(self) -> bool:
        """Return whether all hold the very objects that they held."""
        for number, value in enumerate(self.objects):
            if type(value) is not self.classes[number]:
                return False
        for number, value in enumerate(self.kinds):
            known = self.kind_versions[number]
            if (not known or version_of_class(value) != known) and not self._has_members(number):
                return False
        for number, value in enumerate(self.functions):
            if not runs_same(value, number, self.code, self.defaults, self.named, self.attributes):
                return False
        for number, value in enumerate(self.cells):
            cell = value
            if cell.cell_contents is not self.contents[number]:
                return False
        for number, table in enumerate(self.tables):
            known = self.table_versions[number]
            if (not known or version_of_dict(table) != known) and not self._has_names(number):
                return False
        for number, item in enumerate(self.tensors):
            tensor = item
            if tensor._array is not self.arrays[number] or tensor._state != self.states[number]:
                return False
        for number, table in enumerate(self.dicts):
            known = self.versions[number]
            if (not known or version_of_dict(table) != known) and not self._has_items(number):
                return False
        return self._contain_same()

    # What was written may hold what it did. Then it is known by its new version.

    def _has_members(self, number: int) -> bool:
        kind = self.kinds[number]
        if kind.__bases__ is not self.bases[number] or not _are_one(
            of_class(kind), self.members[number]
        ):
            return False
        type.__getattribute__(kind, "__init__")  # once something is looked up, a class has one
        self.kind_versions[number] = version_of_class(kind)
        return True

    def _has_names(self, number: int) -> bool:
        table = self.tables[number]
        values = self.values[number]
        for place, name in enumerate(self.names[number]):
            if table.get(name, MISSING) is not values[place]:
                return False
        self.table_versions[number] = version_of_dict(table)
        return True

    def _has_items(self, number: int) -> bool:
        table = self.dicts[number]
        keys, items = self.keys[number], self.items[number]
        if len(table) != len(keys):
            return False
        for place, (key, value) in enumerate(table.items()):
            if key is not keys[place]:
                return False
            if value is not items[place] and items[place] is not MISSING:
                return False
        self.versions[number] = version_of_dict(table)
        return True

    def _contain_same(self) -> bool:
        at = 0
        held = self.held
        for number, container in enumerate(self.containers):
            size = self.sizes[number]
            if len(container) != size:
                return False
            if not size:
                continue
            for item in container:
                if item is not held[at]:
                    return False
                at += 1
            if isinstance(container, MAPPINGS):
                for item in container.values():
                    if item is not held[at]:
                        return False
                    at += 1
        return True


def of_class(kind: type) -> list[Any]:
    """Return the names of the attributes of a class, and then their values."""
    table: Any = vars(kind)
    if _NOTED in table:
        table = {name: value for name, value in table.items() if name != _NOTED}
    return [*table, *table.values()]


def _are_one(now: list[Any], held: list[Any]) -> bool:
    """Return whether lists hold the same objects."""
    return len(now) == len(held) and all(map(operator.is_, now, held))


def attributes_of(function: Any) -> Any:
    """Return the attributes of a function; None if it has none."""
    return table_of_function(function) or None


def alike(now: list[Any], held: list[Any]) -> bool:
    """Return whether lists hold the same objects, or equal numbers and strings."""
    return len(now) == len(held) and all(
        [
            a is b or (type(a) is type(b) and type(a) in ATOMS and repr(a) == repr(b))
            for a, b in zip(now, held, strict=True)
        ]
    )
