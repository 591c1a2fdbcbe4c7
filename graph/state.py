"""State: what of Python's objects a captured program may look at, as it was, and whether it still is.

From what a program's functions name, everything is followed that can be reached: attributes, containers,
closures, defaults, classes. Of each object one list of what it holds is kept and compared by identity, since
what is equal today may be changed tomorrow; numbers and strings may be other ones of the same type and value.
What cannot be compared (an iterator, an array of the host, a thread's own data) is an effect: such programs
stay eager.
"""

from __future__ import annotations

import functools
import logging
import re
import weakref
from abc import ABCMeta, get_cache_token
from collections import defaultdict, deque
from contextvars import ContextVar
from operator import attrgetter, methodcaller
from types import (
    BuiltinFunctionType,
    CellType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any

from tensorplug.core.device.device import Device
from tensorplug.core.device.dtypes import DType
from tensorplug.core.tensor.base import TRACKED, TensorBase
from tensorplug.nn import Module

from .caches import Caches
from .classes import (
    has_slots,
    is_foreign,
    is_settled,
    is_standard,
    module_of,
    slots_of,
    table_of_attributes,
)
from .comparing import ATOMS, MAPPINGS, MISSING, of_class
from .contents import (
    decimal_settings,
    halves,
    items_of,
    of_cache,
    of_cell,
    of_factory,
    of_function,
    of_logger,
    of_mapping,
    of_slots,
    of_table,
    of_tensor,
    of_used,
    of_view,
    referent,
)
from .effects import is_handed_on_with_more, may_do_more
from .lookups import is_read_by_name, methods_of, names_of_getter, reads_always
from .records import Record, Records
from .slots import Attribute

__all__ = ["State"]

#: What arguments are called, and nothing that has a name in code.
GIVEN = "an argument"
#: How many objects a program may depend on, and how many more for each module among them: what a module has,
#: most of it tables of hooks, takes less to compare than to call it.
LIMIT = 20_000
OF_A_MODULE = 25
#: What no program looks into, or holds nothing that changes.
_CLOSED: tuple[type, ...] = (
    *ATOMS, TensorBase, Device, DType, type(...), type(NotImplemented), MemberDescriptorType,
    type(vars(functools._CacheInfo)["hits"]),  # the fields of named tuples
)  # fmt: skip
_PROXIES = (weakref.CallableProxyType, weakref.ProxyType)
_VIEWS: tuple[Any, ...] = (type({}.keys()), type({}.values()), type({}.items()))
_SEQUENCES = (list, tuple, set, frozenset, deque)
#: What Cython calls the class of functions.
_COMPILED_FUNCTION = "cython_function_or_method"
#: Functions that read attributes by names that they get.
_LOOKUPS = (getattr, hasattr, vars, dir)
#: The numbers of items at the end of a label.
_INDEX = re.compile(r"(\[\d+\])+$")
#: Of every class and object: nothing that programs look at.
_UNSEEN = frozenset(("__dict__", "__doc__", "__module__", "__weakref__", "__annotations__"))


class State(Records):
    """What a program depends on, as it was.

    Attributes
    ----------
    effects : list of str
        What it looks at that cannot be compared.
    tensors : dict
        The tensors among what it may look at, by id.
    owners : dict
        The same by the id of their arrays.
    """

    def __init__(self) -> None:
        super().__init__()
        self.effects: list[str] = []
        # What cannot be compared, and the last name on the way to it.
        self._opaque: list[tuple[str, str]] = []
        # The names and strings in the code of the program; names of what it does not just call.
        self.used: set[str] = set()
        self.handed_on: set[str] = set()
        # The ids of what counts by names on the way to it; functions in C that may do more, by the last name.
        self._suspects: set[int] = set()
        self._doing_more: list[tuple[str, str]] = []
        # Whether it was noted what classes are said to be subclasses of.
        self._has_abstract = False
        # Modules that were met otherwise than by a name of a module.
        self._met: list[ModuleType] = []
        self._known: dict[int, Any] = {}
        self.caches = Caches()
        # The tables of attributes of all objects, and by id of one the names that count by contents.
        self._tables: set[int] = set()
        self._open: dict[int, set[str]] = {}
        self._limit = LIMIT
        self.tensors: dict[int, Any] = {}
        self.owners: dict[int, Any] = {}
        # Objects that the program itself made, or references to them, by id.
        self.own: dict[int, Any] = {}
        # Objects that it was given by contents, by id, and whether one was met in state as well.
        self.given: dict[int, Any] = {}
        self.met = False
        # What was added, what objects lead to, and the tables of attributes, with the class of their object.
        self._roots: set[int] = set()
        self._objects_called: set[int] = set()
        self._leads: dict[int, list[tuple[Any, str]]] = {}
        self._attributes: dict[int, type] = {}
        # Names by which Python's modules read, and whether anything reads by names that are not known.
        self.read: set[str] = set()
        self.reads_all = False
        # Whether anything is compared with a pattern of a class, and the names by which these read.
        self.matches = False
        self._matched: set[str] = set()

    # --- what is kept ---

    def add(self, value: Any, label: str, called: bool = False) -> None:
        """Keep an object, and all that can be reached from it; `called` if a method of it was called."""
        todo = [(value, label)]
        (self._objects_called if called else self._roots).add(id(value))
        while todo:
            value, label = todo.pop()
            if isinstance(value, TensorBase):
                if id(value) not in self.tensors:
                    self.tensors[id(value)] = value
                    self._objects.append(value)
                    self._classes.append(type(value))
                self.owners.setdefault(id(value._array), value)
                table = getattr(value, "__dict__", None)
                self._leads[id(value)] = [(table, label)]
                value = table
            if id(value) in self._suspects:
                self._kept(value, label)  # by another name, which may be read
                continue
            if id(value) in self._known or id(value) in self.own or isinstance(value, _CLOSED):
                continue
            if id(value) in self.given:
                self.met = True
                continue
            self._known[id(value)] = value
            self._limit += OF_A_MODULE * isinstance(value, Module)
            if len(self._known) > self._limit:
                self.effects.append(f"depends on more than {self._limit} objects")
                return
            self._leads[id(value)] = self._kept(value, label)
            todo += self._leads[id(value)]

    def leave(self, value: Any) -> None:
        """Leave what an object holds out: it was given by contents."""
        self.given[id(value)] = value
        self.met |= id(value) in self._known

    def open(self, attribute: Attribute) -> None:
        """Leave out what an attribute holds: it counts by contents."""
        self._open.setdefault(id(attribute.table), set()).add(attribute.name)

    def _kept(self, value: Any, label: str) -> list[tuple[Any, str]]:
        """Keep one object; return what it leads to."""
        found: list[tuple[Any, str]] = []
        if isinstance(value, _PROXIES):
            found += [(item, label) for item in self._keep(value, label, referent)]
        elif isinstance(value, _VIEWS):
            found.append((value.mapping, label))
        elif isinstance(value, MAPPINGS):
            read: Any = of_mapping
            if id(value) in self._open:
                names = frozenset([name for name in value if name not in self._open[id(value)]])
                read = functools.partial(of_used, used=names)
            held = read(value)
            self._containers.append((value, read, held, label))
            found += [(item, f"{label}[{key!r}]") for key, item in zip(*halves(held), strict=True)]
            if isinstance(value, defaultdict):
                found += [(item, label) for item in self._keep(value, label, of_factory)]
            found += _attributes_of_subclass(value, label, dict)
        elif isinstance(value, _SEQUENCES):
            held = items_of(value)
            if not isinstance(value, (tuple, frozenset)):
                self._containers.append((value, items_of, held, label))
            fields = getattr(type(value), "_fields", None) or [""] * len(held)
            found += [
                (item, f"{label}.{fields[number]}" if fields[number] else f"{label}[{number}]")
                for number, item in enumerate(held)
            ]
            found += _attributes_of_subclass(value, label, *_SEQUENCES)
        elif isinstance(value, bytearray):
            self._keep(value, label, lambda array: [bytes(array)])
        elif isinstance(value, CellType):
            held = of_cell(value)
            empty = held[0] is MISSING
            (self._records if empty else self._cells).append((value, of_cell, held, label))
            found += [(item, label) for item in held]
        elif isinstance(value, weakref.ref):
            found += [(item, label) for item in self._keep(value, label, lambda ref: [ref()])]
        elif isinstance(value, ContextVar):
            held = self._keep(value, label, lambda variable: [variable.get(MISSING)])
            found += [(item, label) for item in held]
        elif isinstance(value, MethodType):
            found += [(value.__self__, label), (value.__func__, label)]
        elif isinstance(value, (BuiltinFunctionType, MethodWrapperType)):
            if not isinstance(value.__self__, ModuleType):
                found.append((value.__self__, label))
            elif value in _LOOKUPS:
                self.reads_all = True
            if may_do_more(value):
                self._suspects.add(id(value))
            # What is a variable, or a default, is seen where it is used.
            if id(value) in self._suspects and "()" not in label and ("." in label or "[" in label):
                self._doing_more.append((_last_name(_INDEX.sub("", label)), label))
        elif isinstance(value, FunctionType):
            found += self._of_function(value)
        elif type(value).__name__ == _COMPILED_FUNCTION and is_foreign(module_of(value)):
            pass  # as a function of this library that was not compiled
        elif isinstance(value, (attrgetter, methodcaller)):
            self.read.update(names_of_getter(value))
        elif isinstance(value, functools.partial):
            found += [(item, label) for item in (value.func, value.args, value.keywords)]
            if is_handed_on_with_more(value.func):  # of whose call nobody is told
                self._suspect(value, label, f"calls {label}")
        elif isinstance(value, (staticmethod, classmethod)):
            found.append((value.__func__, label))
        elif isinstance(value, property):
            found += [(item, label) for item in (value.fget, value.fset)]
        elif isinstance(value, functools.cached_property):
            found.append((value.func, label))
        elif isinstance(value, functools._lru_cache_wrapper):
            if not is_standard(module_of(value)):
                held = self._keep(value, label, of_cache)
                self.caches.add(value)
                found += [(item, label) for item in held if isinstance(item, TensorBase)]
            found.append((value.__wrapped__, label))
        elif isinstance(value, type):
            found += self._of_class(value)
        elif isinstance(value, ModuleType):
            if not is_foreign(value.__name__):
                self._met.append(value)
        elif isinstance(value, logging.Logger):
            self._keep(value, label, of_logger)
        elif hasattr(type(value), "__array_interface__") or _shows_memory(value):
            self._suspect(value, label, f"looks at an array of the host, {label}")
        else:
            found += self._of_object(value, label)
        return found

    def _suspect(self, value: Any, label: str, what: str) -> None:
        """Note what cannot be compared, under each name on a way to it."""
        self._suspects.add(id(value))
        self._opaque.append(("" if label == GIVEN else _last_name(label), what))

    def _of_function(self, function: FunctionType) -> list[tuple[Any, str]]:
        if is_foreign(module_of(function)):
            return []
        label = function.__name__
        held = of_function(function)
        for kept, value in zip(self._of_functions, (function, *held), strict=True):
            kept.append(value)
        # Defaults are looked at under the parameters' names, which any code may have.
        found = [(item, f"{label}()") for item in held[:-1]] + [(held[-1], label)]
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        return found + [(cell, name) for name, cell in cells]

    def _of_class(self, kind: type) -> list[tuple[Any, str]]:
        if isinstance(kind, ABCMeta) and not self._has_abstract:
            self._has_abstract = True
            self.setting(get_cache_token)  # another one once ABCMeta.register() was called
        if is_standard(module_of(kind)):
            if module_of(kind) == "decimal":
                self.settings(decimal_settings)
            return []
        held = of_class(kind)
        for kept, value in zip(self._of_classes, (kind, kind.__bases__, held), strict=True):
            kept.append(value)
        self._matched.update(getattr(kind, "__match_args__", ()))
        if is_foreign(module_of(kind)):  # only what takes the place of its methods is of interest
            return []
        values = [
            (item, f"{kind.__name__}.{name}")
            for name, item in zip(*halves(held), strict=True)
            if name not in _UNSEEN
        ]
        return values + [(base, base.__name__) for base in (*kind.__mro__[1:], type(kind))]

    def _of_object(self, value: Any, label: str) -> list[tuple[Any, str]]:
        kind: Any = type(value)
        if is_settled(kind) and not isinstance(value, Module):
            return [(kind, kind.__name__)] if module_of(kind) == "decimal" else []
        found: list[tuple[Any, str]] = []
        state = table_of_attributes(value)
        slots = slots_of(kind)
        standard = is_standard(module_of(kind))
        hidden = state is None and not slots and not (standard and has_slots(kind))
        if hidden or (standard and hasattr(kind, "__next__")):
            self._suspect(value, label, f"looks at an object of class {kind.__name__}, {label}")
        if module_of(kind) == "_thread":
            self._suspect(value, label, f"looks at what is a thread's own, {label}")
            return []
        if isinstance(state, dict):
            found.append((state, label))
            self._tables.add(id(state))
            if not isinstance(
                value, Module
            ):  # of many modules it would take time, and nobody does it
                self._keep(value, label, of_table)
            if is_read_by_name(value):
                self._attributes[id(state)] = kind
        self._objects.append(value)
        self._classes.append(kind)
        held = [kind]
        if slots:
            held = self._keep(value, label, functools.partial(of_slots, slots=slots))
        found += [
            (item, f"{label}.{name}") for (name, _), item in zip(slots, held[1:], strict=True)
        ]
        return [*found, (kind, kind.__name__)]

    def settle(self) -> None:
        """After the first run: note what it looked at that cannot be compared."""
        self.effects += [what for name, what in self._opaque if not name or name in self.used]
        self.effects += [
            f"hands on {what}"
            for name, what in self._doing_more
            if not self.handed_on.isdisjoint((name, f".{name}"))
        ]
        for module in self._met:
            table = vars(module)
            for name in self.used.intersection(table):
                value = self.name(table, name)
                if not callable(value):
                    self.add(value, name)
        if "__annotations__" in self.used:
            for kind in [*self._of_classes[0]]:
                self.add(vars(kind).get("__annotations__"), kind.__name__)
        for tensor in self.tensors.values():
            for kept, fact in zip(self._of_tensors, (tensor, *of_tensor(tensor)), strict=True):
                kept.append(fact)
            if tensor._state > TRACKED:  # a view, whose base may come to require grad
                self._keep(tensor, "a tensor", of_view)

    def kept(self) -> dict[int, Any]:
        """Return all objects that were kept, by id."""
        return self._known

    def ids(self) -> set[int]:
        """Return the ids of all objects that were kept."""
        return set(self._known)

    def reached(self, used: set[str] | None = None) -> set[int]:
        """Return the ids of what is reached from what was added, if `used` is given by those names alone.

        Without, what is not reached but from the objects of methods that were called is left out: the program
        may have made these.
        """
        names_of = (
            {} if used is None else {id(value): held for value, _, held, _ in self._containers}
        )
        found: set[int] = set()
        todo = [*(self._roots | self._objects_called if used is not None else self._roots)]
        while todo:
            one = todo.pop()
            if one in found:
                continue
            found.add(one)
            leads = self._leads.get(one, ())
            if used is not None and self._is_read_by_name(one, used):
                names, _ = halves(names_of[one])
                leads = [
                    lead
                    for name, lead in zip(names, leads, strict=True)
                    if name in used or reads_always(name)
                ]
            todo += [id(item) for item, _ in leads]
        return found

    def _is_read_by_name(self, table: int, used: set[str]) -> bool:
        kind = self._attributes.get(table)
        return kind is not None and used.isdisjoint(methods_of(kind))

    def names_read(self) -> set[str]:
        """Return the names by which the program may read attributes."""
        return self.used | self.read | (self._matched if self.matches else set())

    def narrow(self, seen: set[int]) -> None:
        """Leave attributes out that the program cannot have read, since nothing in it has their names.

        So a counter of steps, or an optimizer, beside a network makes no other graph. `seen` are the ids of
        tensors and modules that it did read: if they cannot be reached by such names, nothing is left out.
        """
        if self.reads_all:
            return
        used = self.names_read()
        reached = self.reached(used)
        if (seen & self._leads.keys()) - reached:
            return
        gone = self._leads.keys() - reached
        self._containers = [
            self._narrowed(record, used) for record in self._containers if id(record[0]) not in gone
        ]
        self._records = [record for record in self._records if id(record[0]) not in gone]
        self._cells = [record for record in self._cells if id(record[0]) not in gone]
        found: list[tuple[list[Any], ...]] = [
            (self._objects, self._classes), self._of_classes, self._of_functions, self._of_tensors,
        ]  # fmt: skip
        for columns in found:
            kept = [number for number, value in enumerate(columns[0]) if id(value) not in gone]
            for column in columns:
                column[:] = [column[number] for number in kept]
        for table in (self._known, self.tensors):
            for one in gone & table.keys():
                del table[one]
        self._leads.clear()
        self._quick = None

    def _narrowed(self, record: Record, used: set[str]) -> Record:
        """Return a record of a table of attributes without the values of those that are not used."""
        table, _, _, label = record
        if not self._is_read_by_name(id(table), used):
            return record
        left_out = self._open.get(id(table), ())
        names = frozenset(
            [
                name
                for name in table
                if (name in used or reads_always(name)) and name not in left_out
            ]
        )
        read = functools.partial(of_used, used=names)
        return table, read, read(table), label


def _attributes_of_subclass(value: Any, label: str, *own: type) -> list[tuple[Any, str]]:
    """Return the attributes and the class of a container that is of a class of somebody's own."""
    kind = type(value)
    if kind in own or is_foreign(module_of(kind)):
        return []
    return [(table_of_attributes(value), label), (kind, kind.__name__)]


def _last_name(label: str) -> str:
    """Return the name at the end of a label; "" if that is an index."""
    if label.endswith("']"):
        return label[label.rindex("['") + 2 : -2]
    return "" if label.endswith("]") else label.rpartition(".")[2]


def _shows_memory(value: Any) -> bool:
    """Return whether an object shows memory that others may write, such as an array of Python's."""
    if isinstance(value, memoryview):
        return True
    try:
        with memoryview(value) as shown:
            return not shown.readonly
    except (TypeError, BufferError, ValueError):
        return False
