"""Records: what objects held, as it was found, and whether they still do."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from . import comparing
from .comparing import MAPPINGS, MISSING, Held, alike, of_class
from .contents import halves, of_function, of_setting, of_tensor

__all__ = ["Record", "Records"]

#: What an object holds: the object, how to list that, the list as it was, and a name for it.
Record = tuple[Any, Callable[[Any], list[Any]], list[Any], str]


class Records:
    """What objects held."""

    def __init__(self) -> None:
        # What takes a call to compare; mappings and other containers; variables of functions around others.
        self._records: list[Record] = []
        self._containers: list[Record] = []
        self._cells: list[Record] = []
        # Objects with attributes, whose class may be set anew.
        self._objects: list[Any] = []
        self._classes: list[type] = []
        # Classes, their bases and attributes; functions, their code, defaults, those by name, attributes.
        self._of_classes: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
        self._of_functions: tuple[list[Any], ...] = ([], [], [], [], [])
        # Tensors, their arrays, whether they require grad, and what else is known of their memory.
        self._of_tensors: tuple[list[Any], list[Any], list[int], list[Any]] = ([], [], [], [])
        # Names in tables of modules: the table, the name, what it stood for.
        self._names: list[tuple[Any, str, Any]] = []
        self._named: set[tuple[int, str]] = set()
        # Settings that were kept, by id.
        self._settings: dict[int, Any] = {}
        # All but the first records, quick to compare.
        self._quick: Held | None = None

    # --- what is kept ---

    def name(self, table: Any, name: str) -> Any:
        """Keep what a name in a module's table stands for, and return it."""
        value = table.get(name, MISSING)
        if (id(table), name) not in self._named:
            self._named.add((id(table), name))
            if type(table) is dict:
                self._names.append((table, name, value))
            else:
                self._keep(table, name, lambda table: [table.get(name, MISSING)])
        return value

    def setting(self, read: Callable[[], Any]) -> None:
        """Keep a setting, which a function without arguments tells."""
        self._keep(read, "a setting", of_setting)

    def settings(self, read: Callable[[], list[Any]], held: list[Any] | None = None) -> None:
        """Keep several settings, once: as they are, or as they were before."""
        if id(read) not in self._settings:
            self._settings[id(read)] = read
            held = read() if held is None else held
            self._records.append((read, lambda read: read(), held, "a setting"))

    def _keep(self, value: Any, label: str, read: Callable[[Any], list[Any]]) -> list[Any]:
        held = read(value)
        self._records.append((value, read, held, label))
        return held

    # --- whether it still is ---

    def changed(self) -> str:
        """Return what is not as it was; "" if all is."""
        try:
            if self._quick is None or not self._quick.same():
                self._quick = None
                changed = self._not_alike()
                if changed:
                    return changed
                self._quick = self._held()
            for value, read, held, label in self._records:
                if not alike(read(value), held):
                    return label
        except Exception as error:  # what is read may be of any class
            return f"what cannot be compared: {error}"
        return ""

    def _not_alike(self) -> str:
        """Return what is not as it was; keep what is equal to what was there."""
        for records in (self._containers, self._cells):
            for number, (value, read, held, label) in enumerate(records):
                now = read(value)
                if not alike(now, held):
                    return label
                records[number] = (value, read, now, label)
        for value, kind in zip(self._objects, self._classes, strict=True):
            if type(value) is not kind:
                return "the class of an object"
        kinds, bases, members = self._of_classes
        for number, kind in enumerate(kinds):
            if kind.__bases__ is not bases[number]:
                return "the bases of a class"
            now = of_class(kind)
            if not alike(now, members[number]):
                return str(kind.__name__)
            members[number] = now
        for function, *held in zip(*self._of_functions, strict=True):
            if any([a is not b for a, b in zip(of_function(function), held, strict=True)]):
                return "a function"
        tensors, arrays, states, kinds = self._of_tensors
        for number, tensor in enumerate(tensors):
            array, state, kind = of_tensor(tensor)
            if state != states[number] or kind != kinds[number]:
                return "a tensor"
            arrays[number] = array
        for number, (table, name, value) in enumerate(self._names):
            now = table.get(name, MISSING)
            if not alike([now], [value]):
                return name
            self._names[number] = (table, name, now)
        return ""

    def _held(self) -> Held:
        """Return what is held now."""
        made = Held()
        # Versions are not known yet: what was listed above may have been written meanwhile.
        tables = [record for record in self._containers if type(record[0]) is dict]
        made.dicts = [table for table, *_ in tables]
        made.versions = [0] * len(tables)
        made.keys = [halves(held)[0] for _, _, held, _ in tables]
        made.items = [halves(held)[1] for _, _, held, _ in tables]
        others = [record for record in self._containers if type(record[0]) is not dict]
        made.containers = [value for value, *_ in others]
        made.sizes = [
            len(held) >> isinstance(value, MAPPINGS)  # keys and values
            for value, _, held, _ in others
        ]
        made.held = [item for _, _, held, _ in others for item in held]
        made.objects, made.classes = self._objects, self._classes
        made.kinds, made.bases, made.members = self._of_classes
        made.kind_versions = [0] * len(made.kinds)
        made.functions, made.code, made.defaults, made.named, made.attributes = self._of_functions
        made.cells = [value for value, *_ in self._cells]
        made.contents = [held[0] for _, _, held, _ in self._cells]
        of_tables: dict[int, tuple[Any, list[str], list[Any]]] = {}
        for table, name, value in self._names:
            _, names, values = of_tables.setdefault(id(table), (table, [], []))
            names.append(name)
            values.append(value)
        made.tables = [table for table, _, _ in of_tables.values()]
        made.table_versions = [0] * len(of_tables)
        made.names = [names for _, names, _ in of_tables.values()]
        made.values = [values for _, _, values in of_tables.values()]
        made.tensors, made.arrays, made.states, _ = self._of_tensors
        return made


def _runs_same(function: Any, number: int, *held: list[Any]) -> bool:
    now = of_function(function)
    return all([value is column[number] for value, column in zip(now, held, strict=True)])


# Uncompiled, no versions are known.
comparing.version_of_class = comparing.version_of_dict = lambda value: 0
comparing.table_of_function = attrgetter("__dict__")
comparing.runs_same = _runs_same
