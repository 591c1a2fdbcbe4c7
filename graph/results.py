"""Results: what a program returns, taken apart into tensors and what is the same at each call."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from tensorplug.autograd.transforms.pytree import CONTAINERS, LEAF, Container, Tree, container_of
from tensorplug.core.tensor.base import TensorBase
from tensorplug.core.tensor.shapes import Size

from .classes import is_plain, slots_of
from .given import UNCHANGED, Place
from .keys import PLAIN

__all__ = ["Results", "Unreturnable"]

_CHANGEABLE = (list, dict, set)


class Unreturnable(Exception):
    """A result that later calls could not return as the program does."""


class Made:
    """In a :class:`Tree`: an object that the program made, of some class, with attributes of some names."""


def _remade(values: Any, made: tuple[type, list[str]]) -> Any:
    kind, names = made
    value: Any = object.__new__(kind)
    vars(value).update(zip(names, values, strict=True))
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

    Raises
    ------
    Unreturnable
        If one object stands in two places, or a container is one of the arguments.
    """

    def __init__(
        self, result: Any, state: set[int], given: set[int], makes: bool, places: dict[int, int]
    ) -> None:
        self._places = places
        self._state = state
        self._given = given
        self._makes = makes
        self._seen: dict[int, Any] = {}
        self.leaves: list[Any] = []
        self.tree = self._flattened(result)

    def _flattened(self, value: Any) -> Tree:
        kind: Any = type(value)
        if value is UNCHANGED or id(value) in self._places:
            self.leaves.append(UNCHANGED if value is UNCHANGED else Place(self._places[id(value)]))
            return LEAF
        container = container_of(kind)
        makes = container is None and self._makes and is_plain(value) and not slots_of(kind)
        if id(value) in self._state and not isinstance(value, (tuple, TensorBase, *PLAIN)):
            return Tree(Same, value)
        if container is None and not makes:
            self.leaves.append(value)
            return LEAF
        if makes or isinstance(value, _CHANGEABLE):
            if id(value) in self._given:
                raise Unreturnable(f"returns a {kind.__name__} that it was given")
            if id(value) in self._seen:
                raise Unreturnable(f"returns one {kind.__name__} in two places")
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
        table = vars(value)
        return Tree(Made, (kind, [*table]), [self._flattened(item) for item in table.values()])
