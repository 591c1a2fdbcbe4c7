"""Nested containers of values ("pytrees"): taken apart into a list of leaves, and put together again.

Tuples, named tuples, lists, dicts and ordered dicts are containers; anything else, None too, is a leaf.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

__all__ = ["Tree", "tree_flatten", "tree_leaves", "tree_map", "tree_unflatten"]


class Tree:
    """The structure of a nested container, without its leaves.

    Attributes
    ----------
    kind : type or None
        The container's class; None for a leaf.
    keys : tuple
        The keys of a dict.
    children : tuple of Tree
        The structures of what it holds.
    """

    __slots__ = ("children", "keys", "kind", "num_leaves")

    def __init__(
        self, kind: Any = None, keys: tuple[Any, ...] = (), children: tuple[Tree, ...] = ()
    ) -> None:
        self.kind = kind
        self.keys = keys
        self.children = children
        self.num_leaves: int = 1 if kind is None else sum([c.num_leaves for c in children])

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Tree)
            and self.kind is other.kind
            and self.keys == other.keys
            and self.children == other.children
        )

    def __hash__(self) -> int:
        return hash((self.kind, len(self.children)))

    def __repr__(self) -> str:
        if self.kind is None:
            return "*"
        inner = [repr(child) for child in self.children]
        if self.keys:
            inner = [f"{key!r}: {text}" for key, text in zip(self.keys, inner, strict=True)]
        return f"{self.kind.__name__}({', '.join(inner)})"


LEAF = Tree()


def tree_flatten(tree: Any) -> tuple[list[Any], Tree]:
    """Return the leaves of a nested container in order, and its structure.

    Examples
    --------
    >>> tree_flatten({"a": 1, "b": [2, (3,)]})
    ([1, 2, 3], dict('a': *, 'b': list(*, tuple(*))))
    """
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves)


def _flatten(tree: Any, leaves: list[Any]) -> Tree:
    kind = type(tree)
    if kind in (dict, OrderedDict, defaultdict):
        return Tree(kind, tuple(tree), tuple([_flatten(item, leaves) for item in tree.values()]))
    if kind in (tuple, list) or (isinstance(tree, tuple) and hasattr(kind, "_fields")):
        return Tree(kind, (), tuple([_flatten(item, leaves) for item in tree]))
    leaves.append(tree)
    return LEAF


def tree_unflatten(leaves: Any, spec: Tree) -> Any:
    """Return the nested container of a structure, with these leaves.

    Examples
    --------
    >>> leaves, spec = tree_flatten([1, (2, 3)])
    >>> tree_unflatten(["a", "b", "c"], spec)
    ['a', ('b', 'c')]
    """
    if isinstance(leaves, Tree):  # torch took the arguments the other way round, once
        leaves, spec = spec, leaves
    rest = iter(leaves)
    return _unflatten(spec, rest)


def _unflatten(spec: Tree, leaves: Any) -> Any:
    if spec.kind is None:
        return next(leaves)
    items = [_unflatten(child, leaves) for child in spec.children]
    if spec.kind is tuple or spec.kind is list:
        return spec.kind(items)
    if spec.kind is defaultdict:
        return defaultdict(None, zip(spec.keys, items, strict=True))
    if spec.kind in (dict, OrderedDict):
        return spec.kind(zip(spec.keys, items, strict=True))
    return spec.kind(*items)


def tree_leaves(tree: Any) -> list[Any]:
    """Return the leaves of a nested container."""
    return tree_flatten(tree)[0]


def tree_map(function: Callable[..., Any], tree: Any, *rests: Any) -> Any:
    """Return a nested container of the function's results, one per leaf.

    Further trees of the same structure supply further arguments.

    Examples
    --------
    >>> tree_map(lambda a, b: a + b, {"x": 1, "y": [2]}, {"x": 10, "y": [20]})
    {'x': 11, 'y': [22]}
    """
    leaves, spec = tree_flatten(tree)
    others = []
    for rest in rests:
        found, other = tree_flatten(rest)
        if other != spec:
            raise ValueError(f"tree_map: structures differ: {spec} and {other}")
        others.append(found)
    return tree_unflatten([function(*items) for items in zip(leaves, *others, strict=True)], spec)


def broadcast_prefix(prefix: Any, spec: Tree) -> list[Any] | None:
    """Return one value per leaf of `spec` from a tree that may stop above the leaves, or None."""
    if spec.kind is None:
        return [prefix] if tree_flatten(prefix)[1] is LEAF else None
    found, own = tree_flatten(prefix)
    if own is LEAF:
        return found * spec.num_leaves
    if own.kind is not spec.kind or len(own.children) != len(spec.children):
        return None
    if own.keys != spec.keys:
        return None
    items = list(prefix.values()) if own.keys else list(prefix)
    result: list[Any] = []
    for item, child in zip(items, spec.children, strict=True):
        part = broadcast_prefix(item, child)
        if part is None:
            return None
        result.extend(part)
    return result
