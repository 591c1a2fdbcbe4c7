"""Nested containers, under the names that torch's programs use.

The containers are those of function transforms: ``vmap`` and ``grad`` take apart what is registered here.
"""
# pyright: reportUnusedFunction=false

from __future__ import annotations

import collections
import dataclasses
import importlib
import json
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

from tensorplug.autograd.transforms import pytree
from tensorplug.autograd.transforms.pytree import (
    CONTAINERS,
    LEAF,
    IsLeaf,
    Tree as TreeSpec,
    broadcast_prefix,
    container_of,
    is_named_tuple as is_namedtuple_class,
    tree_flatten as tree_flatten,
    tree_leaves as tree_leaves,
    tree_map as tree_map,
    tree_unflatten as tree_unflatten,
)

__all__ = [
    "Context",
    "GetAttrKey",
    "LeafSpec",
    "MappingKey",
    "PyTree",
    "PyTreeSpec",
    "SequenceKey",
    "TreeSpec",
    "arg_tree_leaves",
    "is_namedtuple",
    "is_namedtuple_class",
    "is_namedtuple_instance",
    "key_get",
    "keystr",
    "register_constant",
    "register_dataclass",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
    "treespec_dict",
    "treespec_dumps",
    "treespec_leaf",
    "treespec_loads",
    "treespec_pprint",
    "treespec_tuple",
]

PyTree: TypeAlias = Any
Context: TypeAlias = Any
FlattenFunc: TypeAlias = Callable[[Any], tuple[Iterable[Any], Any]]
UnflattenFunc: TypeAlias = Callable[[Iterable[Any], Any], Any]
FlattenFn, UnflattenFn = FlattenFunc, UnflattenFunc
PyTreeSpec = TreeSpec

#: The classes that are containers.
SUPPORTED_NODES = CONTAINERS


def LeafSpec() -> TreeSpec:
    """Return the structure of a leaf."""
    return LEAF


def treespec_leaf() -> TreeSpec:
    """Return the structure of a leaf."""
    return LEAF


def treespec_tuple(iterable: Iterable[TreeSpec] = ()) -> TreeSpec:
    """Return the structure of a tuple of parts with these structures."""
    return TreeSpec(tuple, None, list(iterable))


def treespec_dict(mapping: Any = (), /, **kwargs: TreeSpec) -> TreeSpec:
    """Return the structure of a dict of parts with these structures."""
    parts = dict(mapping, **kwargs)
    return TreeSpec(dict, list(parts), list(parts.values()))


# --- keys: where a leaf stands ---


class SequenceKey(NamedTuple):
    """A place in a list or tuple."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """Return what stands there."""
        return sequence[self.idx]


class MappingKey(NamedTuple):
    """A place in a dict."""

    key: Hashable

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """Return what stands there."""
        return mapping[self.key]


class GetAttrKey(NamedTuple):
    """A place in a named tuple, or in an object."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """Return what stands there."""
        return getattr(obj, self.name)


KeyEntry: TypeAlias = Any
KeyPath: TypeAlias = tuple[KeyEntry, ...]


def keystr(kp: KeyPath) -> str:
    """Return a path as text, as one would write it behind a name."""
    return "".join([str(key) for key in kp])


def key_get(obj: Any, kp: KeyPath) -> Any:
    """Return what stands at a path."""
    for key in kp:
        obj = key.get(obj)
    return obj


# --- registration ---


class _Written(NamedTuple):
    """How a class and its context are written as text, and how its children are named."""

    name: str | None
    dump: Callable[[Any], Any] | None
    load: Callable[[Any], Any] | None
    with_keys: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None


_written: dict[type, _Written] = {}


def register_pytree_node(
    cls: type,
    flatten_fn: FlattenFunc,
    unflatten_fn: UnflattenFunc,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Any], Any] | None = None,
    from_dumpable_context: Callable[[Any], Any] | None = None,
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None = None,
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
    serialized_type_name : str, optional
        What :func:`treespec_dumps` calls the class.
    to_dumpable_context, from_dumpable_context : callable, optional
        Turn the context into what json writes, and back.
    flatten_with_keys_fn : callable, optional
        Like `flatten_fn`, with pairs of a key and a child.

    Examples
    --------
    >>> from tensorplug.utils import _pytree as pytree
    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> pytree.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda ab, _: Pair(*ab))
    >>> pytree.tree_map(lambda x: 10 * x, [Pair(1, 2)])[0].b
    20
    """
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(
            f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered."
        )
    pytree.register_pytree_node(cls, flatten_fn, unflatten_fn)
    _written[cls] = _Written(
        serialized_type_name, to_dumpable_context, from_dumpable_context, flatten_with_keys_fn
    )


def register_dataclass(
    cls: type,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Make instances of a data class containers of their fields.

    Parameters
    ----------
    cls : type
        The class.
    field_names : list of str, optional
        The fields that are children; by default all that ``__init__`` takes.
    drop_field_names : list of str, optional
        Fields that have defaults and that neither children nor copies have.
    serialized_type_name : str, optional
        What :func:`treespec_dumps` calls the class.

    Examples
    --------
    >>> import dataclasses
    >>> from tensorplug.utils import _pytree as pytree
    >>> @dataclasses.dataclass
    ... class Point:
    ...     x: int
    ...     y: int
    >>> pytree.register_dataclass(Point)
    >>> pytree.tree_map(lambda value: value + 1, Point(1, 2)).y
    3
    """
    if not dataclasses.is_dataclass(cls):
        raise ValueError(f"Provided {cls} must be a dataclass")
    taken = [field.name for field in dataclasses.fields(cls) if field.init]
    dropped = drop_field_names or []
    names = [name for name in taken if name not in dropped] if field_names is None else field_names
    unknown = {*names, *dropped} - set(taken) or set(taken) - {*names, *dropped}
    if unknown:
        raise ValueError(f"{cls.__name__} has the fields {taken}; {sorted(unknown)} do not fit")

    def flatten(value: Any) -> tuple[list[Any], Any]:
        return [getattr(value, name) for name in names], None

    def with_keys(value: Any) -> tuple[list[tuple[Any, Any]], Any]:
        return [(GetAttrKey(name), getattr(value, name)) for name in names], None

    register_pytree_node(
        cls,
        flatten,
        lambda values, _: cls(**dict(zip(names, values, strict=True))),
        serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=with_keys,
    )


def register_constant(cls: type) -> None:
    """Make instances of a class containers of nothing, which structures hold and compare.

    Examples
    --------
    >>> from tensorplug.utils import _pytree as pytree
    >>> class Mode(str):
    ...     pass
    >>> pytree.register_constant(Mode)
    >>> pytree.tree_leaves([1, Mode("fast")])
    [1]
    """
    register_pytree_node(cls, lambda value: ([], value), lambda _, context: context)


def _register_pytree_node(cls: type, flatten_fn: Any, unflatten_fn: Any, **kwargs: Any) -> None:
    """Do what :func:`register_pytree_node` does, under the name of before torch 2.2."""
    register_pytree_node(cls, flatten_fn, unflatten_fn, **kwargs)


_private_register_pytree_node = _register_pytree_node


def _deregister_pytree_node(cls: type) -> None:
    """Make instances of a registered class leaves again."""
    del CONTAINERS[cls], _written[cls]


# --- paths ---


def _named_children(tree: Any) -> list[tuple[Any, Any]] | None:
    """Return the children of a container with their keys; None for leaves."""
    kind = type(tree)
    found = container_of(kind)
    if found is None:
        return None
    own = _written.get(kind)
    if own is not None:
        if own.with_keys is None:
            raise ValueError(
                f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a "
                "flatten_with_keys_fn argument to register_pytree_node."
            )
        return list(own.with_keys(tree)[0])
    if isinstance(tree, dict):
        return [(MappingKey(key), value) for key, value in tree.items()]
    if is_namedtuple_class(kind):
        return [(GetAttrKey(name), getattr(tree, name)) for name in tree._fields]
    return [(SequenceKey(index), item) for index, item in enumerate(tree)]


def _with_paths(path: KeyPath, tree: Any, is_leaf: IsLeaf) -> Iterator[tuple[KeyPath, Any]]:
    children = None if is_leaf is not None and is_leaf(tree) else _named_children(tree)
    if children is None:
        yield path, tree
    else:
        for key, child in children:
            yield from _with_paths((*path, key), child, is_leaf)


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """Return the leaves of a call's arguments.

    Examples
    --------
    >>> from tensorplug.utils import _pytree as pytree
    >>> pytree.arg_tree_leaves([1, 2], 3, scale={"x": 4})
    [1, 2, 3, 4]
    """
    return tree_leaves([*args, *kwargs.values()])


def tree_leaves_with_path(tree: Any, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """Return the leaves with the paths to them.

    Examples
    --------
    >>> from tensorplug.utils import _pytree as pytree
    >>> [(pytree.keystr(path), leaf) for path, leaf in pytree.tree_leaves_with_path({"a": [1, 2]})]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    return list(_with_paths((), tree, is_leaf))


def tree_flatten_with_path(
    tree: Any, is_leaf: IsLeaf = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """Return the leaves with the paths to them, and the structure."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None
) -> Any:
    """Return a nested container of ``func(path, leaf, ...)``."""
    named, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    results = [func(*pair, *more) for pair, *more in zip(named, *others, strict=True)]
    return tree_unflatten(results, spec)


# --- leaves ---


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> TreeSpec:
    """Return the structure of a nested container."""
    return tree_flatten(tree, is_leaf)[1]


def tree_is_leaf(tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Return whether a value is a leaf."""
    return (is_leaf is not None and is_leaf(tree)) or container_of(type(tree)) is None


_is_leaf = tree_is_leaf


def tree_iter(tree: Any, is_leaf: IsLeaf = None) -> Iterator[Any]:
    """Iterate over the leaves."""
    return iter(tree_leaves(tree, is_leaf))


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """Call a function with each leaf; return the tree as it is."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def _wanted(types: Any) -> Callable[[Any], bool]:
    """Return a test of leaves for a class, several, a union, or a test."""
    if isinstance(types, (type, tuple)) or not callable(types):
        return lambda leaf: isinstance(leaf, types)
    return lambda leaf: bool(types(leaf))


def map_only(
    type_or_types_or_pred: Any, /
) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Return a decorator that has a function leave all but some leaves as they are."""
    wanted = _wanted(type_or_types_or_pred)
    return lambda func: lambda leaf: func(leaf) if wanted(leaf) else leaf


def tree_map_only(
    type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf = None
) -> Any:
    """Return a nested container in which some leaves, by class or by a test, are replaced.

    Examples
    --------
    >>> from tensorplug.utils import _pytree as pytree
    >>> pytree.tree_map_only(int, lambda x: -x, [1, "a", (2.0, 3)])
    [-1, 'a', (2.0, -3)]
    """
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf = None
) -> Any:
    """Call a function with some leaves; return the tree as it is."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Return whether a test holds for all leaves."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Return whether a test holds for any leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(
    type_or_types: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None
) -> bool:
    """Return whether a test holds for all leaves of some classes."""
    return all(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))


def tree_any_only(
    type_or_types: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None
) -> bool:
    """Return whether a test holds for any leaf of some classes."""
    return any(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))


# --- classes ---


def is_namedtuple(obj: Any) -> bool:
    """Return whether something is a named tuple, or a class of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple_instance(obj: Any) -> bool:
    """Return whether something is a named tuple."""
    return is_namedtuple_class(type(obj))


_is_namedtuple_instance = is_namedtuple_instance


def _get_node_type(tree: Any) -> Any:
    """Return the class that a value is a container by; namedtuple for those."""
    named = collections.namedtuple  # noqa: PYI024  # what torch says of all of them
    return named if is_namedtuple_instance(tree) else type(tree)


def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], Any]:
    """Return the values of a dict, and its keys."""
    values, context = CONTAINERS[dict].flatten(d)
    return list(values), context


def _dict_unflatten(values: Iterable[Any], context: Any) -> dict[Any, Any]:
    """Return a dict of values and keys."""
    made: dict[Any, Any] = CONTAINERS[dict].unflatten(values, context)
    return made


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[tuple[Any, Any]], Any]:
    """Return the values of a dict with their keys, and the keys."""
    return _named_children(d) or [], list(d)


def _broadcast_to_and_flatten(
    tree: Any, treespec: TreeSpec, is_leaf: IsLeaf = None
) -> list[Any] | None:
    """Return one value per leaf of a structure from a tree that may stop above them, or None."""
    return broadcast_prefix(tree, treespec, is_leaf)


# --- structures as text ---

_PROTOCOL = 1


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """Return a structure as text.

    Raises
    ------
    NotImplementedError
        If a class in it was registered without a name.
    """
    if protocol not in (None, _PROTOCOL):
        raise ValueError(f"treespec_dumps: unknown protocol {protocol}, there is {_PROTOCOL}")
    return json.dumps([_PROTOCOL, _to_plain(treespec)])


def treespec_loads(serialized: str) -> TreeSpec:
    """Return the structure that :func:`treespec_dumps` wrote.

    Examples
    --------
    >>> from tensorplug.utils import _pytree as pytree
    >>> spec = pytree.tree_structure({"a": [1, (2,)]})
    >>> pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    True
    """
    protocol, plain = json.loads(serialized)
    if protocol != _PROTOCOL:
        raise ValueError(f"treespec_loads: unknown protocol {protocol}, there is {_PROTOCOL}")
    return _from_plain(plain)


def _name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _found(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def _to_plain(spec: TreeSpec) -> dict[str, Any]:
    kind: Any = spec.type
    if kind is None:
        return {"type": None, "context": None, "children_spec": []}
    own = _written.get(kind)
    context: Any = spec.context
    if own is not None:
        if own.name is None:
            raise NotImplementedError(
                f"No registered serialization name for {kind} found. Please pass a "
                "serialized_type_name to register_pytree_node."
            )
        name = own.name
        context = own.dump(context) if own.dump else json.dumps(context)
    elif is_namedtuple_class(kind):
        name, context = "collections.namedtuple", json.dumps(_name_of(kind))
    elif kind is defaultdict:
        name = _name_of(kind)
        context = {  # as torch writes it
            "default_factory_module": getattr(context[0], "__module__", None),
            "default_factory_name": getattr(context[0], "__qualname__", None),
            "dict_context": context[1],
        }
    else:
        name, context = _name_of(kind), json.dumps(context)
    return {
        "type": name,
        "context": context,
        "children_spec": [_to_plain(child) for child in spec.children()],
    }


_PLAIN: dict[str, type] = {_name_of(kind): kind for kind in (tuple, list, dict, OrderedDict, deque)}


def _from_plain(plain: dict[str, Any]) -> TreeSpec:
    name = plain["type"]
    if name is None:
        return LEAF
    children = [_from_plain(child) for child in plain["children_spec"]]
    for kind, own in _written.items():
        if own.name == name:
            context = own.load(plain["context"]) if own.load else json.loads(plain["context"])
            return TreeSpec(kind, context, children)
    context = plain["context"]
    if isinstance(context, dict):  # of a default dict
        module, factory = context["default_factory_module"], context["default_factory_name"]
        made = None if factory is None else _found(f"{module}.{factory}")
        return TreeSpec(defaultdict, [made, context["dict_context"]], children)
    context = json.loads(context)
    if name == "collections.namedtuple":
        return TreeSpec(_found(context), _found(context), children)
    if name not in _PLAIN:
        raise NotImplementedError(f"no class is registered as {name!r}")
    return TreeSpec(_PLAIN[name], context, children)


def treespec_pprint(treespec: TreeSpec) -> str:
    """Return a structure as text for people."""
    return repr(tree_unflatten(["*"] * treespec.num_leaves, treespec)).replace("'*'", "*")
