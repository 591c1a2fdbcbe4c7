"""What a program is given, by contents: objects and containers that it changes, or that are made anew.

An object among the arguments is known by its identity, so that a graph holds for that object alone, and a
program that changes it stays eager. Once a function shows that it changes what it is given, as a cache of
keys and values, or that it gets another object each time, as a batch, the keys of its calls say what these
hold instead: tensors in them are arguments, and what the program changed is changed after each run of the
graph.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.tensor.base import TensorBase
from tensorplug.nn import Buffer, Parameter

from .classes import goes_in_its_own_way, is_plain, slots_of, table_of_attributes
from .keys import PLAIN, Unknown, is_of_items, key_of, modes, name_of, objects_in
from .lookups import reads_always
from .slots import Attribute

__all__ = ["UNCHANGED", "Given", "Place", "contents_of", "put_back"]

#: How many objects and containers calls may be compared by.
LIMIT = 500
_TENSORS = (Tensor, Parameter, Buffer)
_CONTAINERS = (list, dict, OrderedDict)


class Place:
    """In results: the object that was given at some place."""

    def __init__(self, number: int) -> None:
        self.number = number


#: In the contents of what was given: an item that is as it was.
UNCHANGED = Place(-1)


class Given:
    """The arguments of a call, by what they hold.

    Parameters
    ----------
    args, kwargs
        The arguments.
    names : set of str, optional
        The attributes that count; by default all do.
    attributes : sequence of Attribute
        Attributes of state that count as arguments do.

    Attributes
    ----------
    key : tuple
        What calls alike have in common.
    tensors, objects : list
        The tensors and, each once, the objects and containers whose contents the key says.
    others : list of tuple
        Objects that the key knows by identity, with labels.
    left_out : set of str
        Attributes that do not count.

    Raises
    ------
    Unknown
        If that cannot be told.
    """

    def __init__(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        names: set[str] | None = None,
        attributes: Sequence[Attribute] = (),
    ) -> None:
        self.tensors: list[Any] = []
        self.objects: list[Any] = []
        self.others: list[tuple[Any, str]] = []
        self.left_out: set[str] = set()
        self._names = names
        self._numbers: dict[int, int] = {}
        parts = modes()
        for value in args:
            parts.append(self._part(value, _ARGUMENT))
        for name, value in kwargs.items():
            parts.append((name, self._part(value, _ARGUMENT)))
        for attribute in attributes:
            self.objects.append(attribute)
            parts.append(
                self._part(attribute.table.get(attribute.name), (_STATE, attribute.name, True))
            )
        self.key = tuple(parts)

    def numbers(self) -> dict[int, int]:
        """Return the numbers of objects by their ids."""
        return self._numbers

    def instances(self) -> list[Any]:
        """Return those of the objects that are no containers."""
        return [value for value in self.objects if type(value) not in (*_CONTAINERS, Attribute)]

    def _part(self, value: Any, way: tuple[Any, ...]) -> Any:
        kind = type(value)
        if kind in _TENSORS:
            if vars(value):
                self.others += [(item, _label(way)) for item in objects_in(value)]
            return key_of(value, self.tensors)
        if kind in PLAIN or kind is slice or kind is range:
            return key_of(value, self.tensors)
        if isinstance(value, tuple):
            if kind is not tuple and not is_of_items(value):
                raise Unknown(f"an argument is of type {kind.__name__}")
            return (kind, *[self._part(item, way) for item in value])
        if kind in _CONTAINERS or is_given_by_contents(value):
            number = len(self.objects)
            known = self._numbers.setdefault(id(value), number)
            if known < number:
                return ("again", known)
            self.objects.append(value)
            if number == LIMIT:
                raise Unknown(f"arguments are of more than {LIMIT} objects")
            return (kind, *self._items(value, kind, way))
        if isinstance(value, TensorBase) or (way is _ARGUMENT and not objects_in(value)):
            raise Unknown(f"an argument is of type {kind.__name__}")
        if goes_in_its_own_way(value):
            raise Unknown(f"an argument of class {kind.__name__} has a finalizer, and would stay")
        self.others.append((value, _label(way)))
        return (kind, id(value))  # which is watched, and so stays

    def _items(self, value: Any, kind: Any, way: tuple[Any, ...]) -> list[Any]:
        found: list[Any] = []
        if kind is list:
            for number, item in enumerate(value):
                found.append(self._part(item, (way, number, False)))
        elif kind in _CONTAINERS:
            for name, item in value.items():
                found.append((name_of(name), self._part(item, (way, name, False))))
        else:
            table = contents_of(value) if slots_of(kind) else table_of_attributes(value)
            for name, item in table.items():
                if self._names is None or name in self._names or reads_always(name):
                    found.append((name, self._part(item, (way, name, True))))
                else:
                    self.left_out.add(name)
        return found

    # --- what a program changes ---

    def contents(self) -> list[Any]:
        """Return what the objects hold now."""
        return [contents_of(value) for value in self.objects]

    def changes(self, before: list[Any]) -> dict[int, Any]:
        """Return what those of the objects hold, by number, that do not hold what they did."""
        found: dict[int, Any] = {}
        for number, (value, held) in enumerate(zip(self.objects, before, strict=True)):
            now = contents_of(value)
            if not _same(now, held):
                found[number] = _marked(now, held)
        return found


#: The way to an attribute of state.
_STATE = ("state",)
#: The way to an argument; that to what one holds is the way to it, a name, and whether of an attribute.
_ARGUMENT = ("an argument",)


def _label(way: tuple[Any, ...]) -> str:
    """Return a way as text."""
    if len(way) == 1:
        return str(way[0])
    before, name, is_attribute = way
    return _label(before) + (f".{name}" if is_attribute else f"[{name!r}]")


def is_given_by_contents(value: Any) -> bool:
    """Return whether an object is its class and what it holds."""
    return is_plain(value) or type(value) is SimpleNamespace


def _slots(value: Any) -> list[tuple[str, Any]]:
    kind: Any = type(value)
    return slots_of(kind)


def contents_of(value: Any) -> Any:
    """Return a copy of a list or dictionary, and of an object a dictionary of what it holds."""
    if type(value) in _CONTAINERS:
        return value.copy()
    if type(value) is Attribute:
        return {name: value.table[name] for name in (value.name,) if name in value.table}
    found = {}
    for name, member in _slots(value):
        try:
            found[name] = member.__get__(value)
        except AttributeError:
            continue
    return found | (table_of_attributes(value) or {})


def put_back(value: Any, contents: Any) -> None:
    """Have a list, dictionary or object hold something else; items that are :data:`UNCHANGED` stay."""
    held = contents_of(value)
    if type(value) is list:
        value[:] = [held[n] if item is UNCHANGED else item for n, item in enumerate(contents)]
        return
    now = {name: held[name] if item is UNCHANGED else item for name, item in contents.items()}
    if type(value) is Attribute:
        value.table.update(now)
        return
    if type(value) in _CONTAINERS:
        value.clear()
        value.update(now)
        return
    for name, member in _slots(value):
        if name in now:
            member.__set__(value, now.pop(name))
        elif name in held:
            member.__delete__(value)
    table = table_of_attributes(value)
    if table is not None:
        table.clear()
        table.update(now)


def _same(now: Any, held: Any) -> bool:
    if len(now) != len(held):
        return False
    if isinstance(now, list):
        return all([a is b for a, b in zip(now, held, strict=True)])
    pairs = zip(now.items(), held.items(), strict=True)
    return all([a is b and value is before for (a, value), (b, before) in pairs])


def _marked(now: Any, held: Any) -> Any:
    """Return contents with items marked that are as they were."""
    if isinstance(now, list):
        before = [*held, *[UNCHANGED] * len(now)]
        return [UNCHANGED if item is before[n] else item for n, item in enumerate(now)]
    return {
        name: UNCHANGED if name in held and held[name] is item else item
        for name, item in now.items()
    }
