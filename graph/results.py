"""Results: what a program returns, taken apart into tensors and what is the same at each call."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from tensorplug.autograd.transforms.pytree import (
    CONTAINERS,
    LEAF,
    Container,
    Tree,
    container_of,
    tree_unflatten,
)
from tensorplug.core.tensor.base import TensorBase
from tensorplug.core.tensor.shapes import Size

from .classes import is_plain
from .given import UNCHANGED, Place, contents_of, put_back
from .keys import PLAIN

__all__ = ["Part", "Parts", "Results", "Unreturnable", "with_parts"]

_CHANGEABLE = (list, dict, set)


class Unreturnable(Exception):
    """A result that later calls could not return as the program does."""


class _Twice(Exception):
    """An object stands in two places of a result."""


class Part:
    """In results: an object that stands in several places, by its number among those."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __repr__(self) -> str:
        return f"<object {self.number} in several places>"


#: The structures of such objects, one after another, and how many leaves each has.
Parts = list[tuple[Tree, int]]


def with_parts(leaves: list[Any], parts: Parts) -> list[Any]:
    """Return the leaves of a result after those of objects in several places, with these, each made once."""
    made: list[Any] = []

    def taken(start: int, stop: int | None) -> list[Any]:
        return [made[item.number] if type(item) is Part else item for item in leaves[start:stop]]

    start = 0
    for tree, count in parts:
        made.append(tree_unflatten(taken(start, start + count), tree))
        start += count
    return taken(start, None)


class Made:
    """In a :class:`Tree`: an object that the program made, of some class, with attributes of some names."""


def _remade(values: Any, made: tuple[type, list[str]]) -> Any:
    kind, names = made
    value: Any = object.__new__(kind)
    put_back(value, dict(zip(names, values, strict=True)))
    return value


class Same:
    """In a :class:`Tree`: an object of the program's state, which each call returns itself."""


class Sizes:
    """In a :class:`Tree`: the size of a tensor, which others than transforms make of numbers again."""


def _parts_of_leaf(value: Any) -> tuple[list[Any], None]:
    return [], None


CONTAINERS[Made] = Container(_parts_of_leaf, _remade)
CONTAINERS[Sizes] = Container(_parts_of_leaf, lambda items, _: Size(items))
CONTAINERS[Same] = Container(_parts_of_leaf, lambda items, value: value)


class Results:
    """The results of a call, taken apart.

    Parameters
    ----------
    result : object
        What was returned.
    state : set of int
        The ids of what is state. Those objects are returned themselves.
    given : set of int
        The ids of containers among the arguments.
    makes : bool
        Whether objects that the program made may be made again.
    places : dict
        By id the numbers of objects that were given by contents. A :class:`~.given.Place` is a leaf for them.

    Attributes
    ----------
    leaves : list
        Tensors and others, in order.
    tree : Tree
        Their structure.
    parts : list of tuple
        The structures of objects in several places, whose leaves come first.

    Raises
    ------
    Unreturnable
        If an object holds itself, or a container is one of the arguments.
    """

    def __init__(
        self, result: Any, state: set[int], given: set[int], makes: bool, places: dict[int, int]
    ) -> None:
        self._places = places
        self._state = state
        self._given = given
        self._makes = makes
        # By id what stands in several places, and its number once that was gone through.
        self._several: dict[int, int | None] = {}
        while True:
            self._seen: dict[int, Any] = {}
            self._before: list[Any] = []
            self.leaves: list[Any] = []
            self.parts: Parts = []
            try:
                self.tree = self._flattened(result)
                break
            except _Twice:  # of one more object
                self._several = dict.fromkeys(self._several)
        self.leaves[:0] = self._before

    def _part(self, value: Any) -> Tree:
        """Take an object in several places apart, by itself and once."""
        if id(value) not in self._seen:
            others, self.leaves = self.leaves, []
            tree = self._flattened(value, opened=True)
            self._several[id(value)] = len(self.parts)
            self.parts.append((tree, len(self.leaves)))
            self._before += self.leaves
            self.leaves = others
        number = self._several[id(value)]
        if number is None:
            raise Unreturnable(f"returns a {type(value).__name__} that holds itself")
        self.leaves.append(Part(number))
        return LEAF

    def _flattened(self, value: Any, opened: bool = False) -> Tree:
        kind: Any = type(value)
        if value is UNCHANGED or id(value) in self._places:
            self.leaves.append(UNCHANGED if value is UNCHANGED else Place(self._places[id(value)]))
            return LEAF
        container = container_of(kind)
        makes = container is None and self._makes and is_plain(value)
        if id(value) in self._state and not isinstance(value, (tuple, TensorBase, *PLAIN)):
            return Tree(Same, value)
        if container is None and not makes:
            self.leaves.append(value)
            return LEAF
        if makes or isinstance(value, _CHANGEABLE):
            if id(value) in self._given:
                raise Unreturnable(f"returns a {kind.__name__} that it was given")
            if id(value) in self._several and not opened:
                return self._part(value)
            if id(value) in self._seen:
                self._several[id(value)] = None
                raise _Twice
            self._seen[id(value)] = value
        if container is not None:
            items, context = container.flatten(value)
            if (
                self._places
                and kind in (dict, OrderedDict)
                and not all([isinstance(key, PLAIN) for key in context])
            ):
                raise Unreturnable("returns a dictionary by objects")
            return Tree(
                Sizes if kind is Size else kind, context, [self._flattened(item) for item in items]
            )
        table = contents_of(value)
        return Tree(Made, (kind, [*table]), [self._flattened(item) for item in table.values()])
