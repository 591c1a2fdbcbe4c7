"""Nested containers of values ("pytrees"): taken apart into a list of leaves, and put together again.

Tuples, named tuples, sizes, lists, dicts, ordered dicts, default dicts and deques are containers, and
whatever class is registered as one; anything else, None too, is a leaf.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tensorplug.core.tensor.shapes import Size

__all__ = [
    "Tree",
    "register_pytree_node",
    "tree_flatten",
    "tree_leaves",
    "tree_map",
    "tree_unflatten",
]


class Container(NamedTuple):
    """How instances of a class are taken apart and put together.

    Attributes
    ----------
    flatten : callable
        Returns the children, and what else is needed to put them together: the context.
    unflatten : callable
        Makes an instance of children and context.
    """

    flatten: Callable[[Any], tuple[Iterable[Any], Any]]
    unflatten: Callable[[Iterable[Any], Any], Any]

    @property
    def flatten_fn(self) -> Callable[[Any], tuple[Iterable[Any], Any]]:
        """The first, by torch's name."""
        return self.flatten

    @property
    def unflatten_fn(self) -> Callable[[Iterable[Any], Any], Any]:
        """The second, by torch's name."""
        return self.unflatten


def _dict_flatten(d: Any) -> tuple[list[Any], Any]:
    return list(d.values()), list(d)


def _dict_unflatten(values: Iterable[Any], context: Any) -> Any:
    return dict(zip(context, values, strict=True))


_TUPLE = Container(lambda items: (items, None), lambda items, _: tuple(items))
#: The classes that are containers, by the exact class; named tuples are too.
CONTAINERS: dict[type, Container] = {
    tuple: _TUPLE,
    Size: _TUPLE,  # what takes the place of its items may be no ints
    list: Container(lambda items: (items, None), lambda items, _: list(items)),
    dict: Container(_dict_flatten, _dict_unflatten),
    OrderedDict: Container(
        _dict_flatten, lambda items, keys: OrderedDict(zip(keys, items, strict=True))
    ),
    defaultdict: Container(
        lambda d: (list(d.values()), [d.default_factory, list(d)]),
        lambda items, made: defaultdict(made[0], zip(made[1], items, strict=True)),
    ),
    deque: Container(lambda d: (d, d.maxlen), lambda items, length: deque(items, maxlen=length)),
}
_NAMED = Container(lambda items: (items, type(items)), lambda items, kind: kind(*items))


def is_named_tuple(kind: type) -> bool:
    """Return whether a class is one of named tuples."""
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def container_of(kind: type) -> Container | None:
    """Return how instances of a class are taken apart; None for leaves."""
    found = CONTAINERS.get(kind)
    return _NAMED if found is None and is_named_tuple(kind) else found


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_fn: Callable[[Iterable[Any], Any], Any],
) -> None:
    """Make instances of a class containers.

    Parameters
    ----------
    cls : type
        The class; its subclasses are not meant.
    flatten_fn : callable
        Returns the children of an instance, and a context that compares by ``==``.
    unflatten_fn : callable
        Returns an instance for children and a context.

    Raises
    ------
    ValueError
        If the class is a container already.
    """
    if cls in CONTAINERS:
        raise ValueError(f"{cls} is already registered as pytree node.")
    CONTAINERS[cls] = Container(flatten_fn, unflatten_fn)


class Tree:
    """The structure of a nested container, without its leaves.

    Attributes
    ----------
    type : type or None
        The container's class; None for a leaf.
    context : object
        What the container needs beside its children, such as the keys of a dict.
    num_leaves : int
        The number of leaves.
    """

    __slots__ = ("_children", "context", "num_leaves", "type")

    def __init__(
        self, type: Any = None, context: Any = None, children_specs: Iterable[Tree] = ()
    ) -> None:
        self.type = type
        self.context = context
        self._children: tuple[Tree, ...] = tuple(children_specs)
        self.num_leaves: int = (
            1 if type is None else sum([child.num_leaves for child in self._children])
        )

    @property
    def children_specs(self) -> list[Tree]:
        """The structures of what it holds."""
        return list(self._children)

    @property
    def num_children(self) -> int:
        """The number of things that it holds."""
        return len(self._children)

    @property
    def num_nodes(self) -> int:
        """The number of containers and leaves, this one among them."""
        return 1 + sum([child.num_nodes for child in self._children])

    def children(self) -> list[Tree]:
        """Return the structures of what it holds."""
        return list(self._children)

    def child(self, index: int) -> Tree:
        """Return the structure of one of the things that it holds."""
        return self._children[index]

    def is_leaf(self) -> bool:
        """Return whether it is a leaf."""
        return self.type is None

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Return the parts of a tree that stand where this structure has leaves.

        Raises
        ------
        ValueError
            If `tree` does not begin with this structure.
        """
        if self.type is None:
            return [tree]
        found = container_of(type(tree))
        if found is None or type(tree) is not self.type:
            raise ValueError(f"expected a {self.type.__name__}, got {tree!r}")
        items, context = found.flatten(tree)
        if isinstance(tree, dict):  # keys may stand in another order
            items = [tree[key] for key in self.keys if key in tree]
        elif context != self.context:
            raise ValueError(f"node context mismatch: expected {self.context!r}, got {context!r}")
        items = list(items)
        if len(items) != len(self._children) or (
            isinstance(tree, dict) and len(tree) != len(items)
        ):
            raise ValueError(f"expected {len(self._children)} children, got {tree!r}")
        return [
            part
            for child, item in zip(self._children, items, strict=True)
            for part in child.flatten_up_to(item)
        ]

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Return the nested container of this structure, with these leaves."""
        return tree_unflatten(leaves, self)

    @property
    def keys(self) -> list[Any]:
        """The keys of a dict; none of another container."""
        if self.type in (dict, OrderedDict):
            return list(self.context)
        return list(self.context[1]) if self.type is defaultdict else []

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Tree)
            and self.type is other.type
            and self.context == other.context
            and self._children == other._children
        )

    def __hash__(self) -> int:
        return hash((self.type, len(self._children)))

    def __repr__(self) -> str:
        if self.type is None:
            return "*"
        inner = [repr(child) for child in self._children]
        if self.keys:
            inner = [f"{key!r}: {text}" for key, text in zip(self.keys, inner, strict=True)]
        return f"{self.type.__name__}({', '.join(inner)})"


LEAF = Tree()
IsLeaf = Callable[[Any], bool] | None


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], Tree]:
    """Return the leaves of a nested container in order, and its structure.

    Where ``is_leaf(part)`` is True, the part is a leaf, whatever it is.

    Examples
    --------
    >>> tree_flatten({"a": 1, "b": [2, (3,)]})
    ([1, 2, 3], dict('a': *, 'b': list(*, tuple(*))))
    """
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: Any, leaves: list[Any], is_leaf: IsLeaf) -> Tree:
    kind = type(tree)
    found = CONTAINERS.get(kind)
    if found is None and isinstance(tree, tuple) and hasattr(kind, "_fields"):
        found = _NAMED
    if found is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return LEAF
    items, context = found.flatten(tree)
    return Tree(kind, context, [_flatten(item, leaves, is_leaf) for item in items])


def tree_unflatten(leaves: Any, treespec: Tree) -> Any:
    """Return the nested container of a structure, with these leaves.

    Examples
    --------
    >>> leaves, spec = tree_flatten([1, (2, 3)])
    >>> tree_unflatten(["a", "b", "c"], spec)
    ['a', ('b', 'c')]
    """
    if isinstance(leaves, Tree):  # torch took the arguments the other way round, once
        leaves, treespec = treespec, leaves
    given = list(leaves)
    if len(given) != treespec.num_leaves:
        raise ValueError(
            f"treespec.unflatten(leaves): `leaves` has length {len(given)} but the spec refers to a "
            f"pytree that holds {treespec.num_leaves} items ({treespec})."
        )
    return _unflatten(treespec, iter(given))


def _unflatten(spec: Tree, leaves: Any) -> Any:
    if spec.type is None:
        return next(leaves)
    found: Any = container_of(spec.type)
    return found.unflatten([_unflatten(child, leaves) for child in spec._children], spec.context)


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """Return the leaves of a nested container."""
    return tree_flatten(tree, is_leaf)[0]


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """Return a nested container of the function's results, one per leaf.

    Further trees supply further arguments: what stands in them where `tree` has leaves.

    Examples
    --------
    >>> tree_map(lambda a, b: a + b, {"x": 1, "y": [2]}, {"x": 10, "y": [20]})
    {'x': 11, 'y': [22]}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return tree_unflatten([func(*items) for items in zip(leaves, *others, strict=True)], spec)


def broadcast_prefix(prefix: Any, spec: Tree, is_leaf: IsLeaf = None) -> list[Any] | None:
    """Return one value per leaf of `spec` from a tree that may stop above the leaves, or None."""
    if spec.type is None:
        return [prefix] if tree_flatten(prefix, is_leaf)[1] is LEAF else None
    found, own = tree_flatten(prefix, is_leaf)
    if own is LEAF:
        return found * spec.num_leaves
    if own.type is not spec.type or own.context != spec.context:
        return None
    if own.num_children != spec.num_children:
        return None
    container: Any = container_of(own.type)
    result: list[Any] = []
    for item, child in zip(container.flatten(prefix)[0], spec._children, strict=True):
        part = broadcast_prefix(item, child, is_leaf)
        if part is None:
            return None
        result.extend(part)
    return result
