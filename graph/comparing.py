"""Comparing what Python's objects hold with what they held: before each call of a captured program."""

from __future__ import annotations

import gc
from types import MappingProxyType
from typing import Any

__all__ = ["MISSING", "Held", "alike", "table_of"]

#: What a name stands for that is not there.
MISSING = object()

MAPPINGS = (dict, MappingProxyType)
#: Of these an equal one serves as well.
ATOMS: frozenset[Any] = frozenset((int, float, complex, bool, str, bytes, type(None), range))


class Held:
    """What objects held, in lists by place, so that one pass finds out whether they still do.

    Attributes
    ----------
    containers, sizes, items : list
        Mappings and others, how many items each one had, and those one after another; of each mapping all
        keys, then all values, :data:`MISSING` for those that may be any.
    objects, classes : list
        Objects, and of which classes they were.
    kinds, bases : list
        Classes, and what they were derived from.
    functions, code, defaults, named : list
        Functions, their code, their defaults and those by name.
    cells, contents : list
        Variables of functions around others, and what was in them.
    tables, names, values : list
        Tables of modules, names in them, and what these stood for.
    tensors, arrays, states : list
        Tensors, their arrays, and whether they require grad.
    """

    __slots__ = (
        "arrays", "bases", "cells", "classes", "code", "containers", "contents", "defaults", "functions",
        "items", "kinds", "named", "names", "objects", "sizes", "states", "tables", "tensors", "values",
    )  # fmt: skip

    containers: list[Any]
    sizes: list[int]
    items: list[Any]
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
    names: list[Any]
    values: list[Any]
    tensors: list[Any]
    arrays: list[Any]
    states: list[int]

    def same(self) -> bool:
        """Return whether all hold the very objects that they held."""
        for number, value in enumerate(self.objects):
            if type(value) is not self.classes[number]:
                return False
        for number, value in enumerate(self.kinds):
            if value.__bases__ is not self.bases[number]:
                return False
        for number, value in enumerate(self.functions):
            if (
                value.__code__ is not self.code[number]
                or value.__defaults__ is not self.defaults[number]
                or value.__kwdefaults__ is not self.named[number]
            ):
                return False
        for number, value in enumerate(self.cells):
            if value.cell_contents is not self.contents[number]:
                return False
        for number, table in enumerate(self.tables):
            if table.get(self.names[number], MISSING) is not self.values[number]:
                return False
        for number, item in enumerate(self.tensors):
            tensor = item
            if tensor._array is not self.arrays[number] or tensor._state != self.states[number]:
                return False
        return self._contain_same()

    def _contain_same(self) -> bool:
        at = 0
        held = self.items
        for number, container in enumerate(self.containers):
            size = self.sizes[number]
            if len(container) != size:
                return False
            if not size:
                continue
            if type(container) is dict:
                table = container
                for key, value in table.items():
                    if key is not held[at]:
                        return False
                    if value is not held[at + size] and held[at + size] is not MISSING:
                        return False
                    at += 1
                at += size
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


def table_of(container: Any) -> Any:
    """Return the dictionary behind a view of one, such as a class has: it is quicker to go through."""
    if type(container) is MappingProxyType:
        for table in gc.get_referents(container):
            if type(table) is dict:
                return table
    return container


def alike(now: list[Any], held: list[Any]) -> bool:
    """Return whether lists hold the same objects, or equal numbers and strings."""
    return len(now) == len(held) and all(
        [
            a is b or (type(a) is type(b) and type(a) in ATOMS and repr(a) == repr(b))
            for a, b in zip(now, held, strict=True)
        ]
    )
