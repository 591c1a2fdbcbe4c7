"""Nodes: the calls of a graph."""

from __future__ import annotations

import builtins
import operator
import typing
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from tensorplug.core import Tensor
from tensorplug.core.dispatch.op import Op

if TYPE_CHECKING:
    from .graph import Graph

Target = Any
Argument = Any

#: Functions whose calls stay although nobody uses their results: those that write, at first.
_SIDE_EFFECTS: set[Any] = {
    getattr(operator, name)
    for name in (
        "setitem", "delitem", "iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior",
        "ixor", "ilshift", "irshift", "imatmul", "iconcat",
    )
}  # fmt: skip
#: Checks, by the names under which torch has them.
_CHECKS = frozenset({"_assert", "_assert_is_none", "_assert_async"})


def has_side_effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Keep calls of a function in graphs whether or not their results are used; return it."""
    _SIDE_EFFECTS.add(fn)
    return fn


def writes(function: Any, kwargs: dict[str, Any]) -> bool:
    """Return whether a call of a function writes into an argument, as its name or `out` tells."""
    if kwargs.get("out") is not None:
        return True
    name = getattr(function, "__name__", "")
    if getattr(function, "__module__", "") == "_operator":  # and_, or_
        return function in _SIDE_EFFECTS
    return name.endswith("_") and not name.startswith("_")


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """Return nested tuples, lists, dictionaries and slices with a function applied to what is in them."""
    if isinstance(a, tuple):
        items = [map_aggregate(item, fn) for item in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return [map_aggregate(item, fn) for item in a]
    if isinstance(a, dict):
        return {key: map_aggregate(value, fn) for key, value in a.items()}
    if isinstance(a, slice):
        return slice(*[map_aggregate(part, fn) for part in (a.start, a.stop, a.step)])
    return fn(a)


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """Return arguments with a function applied to each node in them."""
    return map_aggregate(a, lambda value: fn(value) if isinstance(value, Node) else value)


class Node:
    """One call of a graph.

    Attributes
    ----------
    graph : Graph
        Whose it is.
    name : str
        What its value is called in the graph's code.
    op : {"placeholder", "get_attr", "call_function", "call_method", "call_module", "output"}
        What kind of call.
    target : str or callable
        The argument, attribute, method or module by name, or the function.
    args, kwargs : tuple, dict
        The arguments, in which nodes stand for their values.
    users : dict of Node
        The nodes among whose arguments this one is.
    meta : dict
        What passes note of it.
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        return_type: Any = None,
    ) -> None:
        wanted = "Callable" if op == "call_function" else "str"
        if not (callable(target) if op == "call_function" else isinstance(target, str)):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                f"{type(target).__name__} but a {wanted} is expected"
            )
        self.graph = graph
        self.name = name
        self.op = op
        self.target = target
        self.type = return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self.stack_trace: str | None = None
        self._inputs: dict[Node, None] = {}
        self._prev: Node = self
        self._next: Node = self
        self._erased = False
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = {}
        self._set(args, kwargs)

    @property
    def args(self) -> tuple[Any, ...]:
        """The arguments by position."""
        return self._args

    @args.setter
    def args(self, args: tuple[Any, ...]) -> None:
        self._set(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The arguments by name."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Any]) -> None:
        self._set(self._args, kwargs)

    def _set(self, args: Iterable[Any], kwargs: dict[str, Any]) -> None:
        for node in self._inputs:
            node.users.pop(self, None)
        self._args = tuple(map_aggregate(tuple(args), lambda value: value))
        self._kwargs = map_aggregate(dict(kwargs), lambda value: value)
        self._inputs = {}

        def note(node: Node) -> Node:
            self._inputs[node] = None
            node.users[self] = None
            return node

        map_arg((self._args, self._kwargs), note)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once."""
        return list(self._inputs)

    @property
    def next(self) -> Node:
        """The node after this one."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Move a node to the place before this one."""
        if x is self:
            return
        x._unlink()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x: Node) -> None:
        """Move a node to the place after this one."""
        self._next.prepend(x)

    def _unlink(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def update_arg(self, idx: int, arg: Any) -> None:
        """Set one argument by position."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Add an argument before a position."""
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Set one argument by name."""
        self.kwargs = {**self._kwargs, key: arg}

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Have all users, or those that a function names, use another node; return them."""
        if propagate_meta:
            replace_with.meta.update(self.meta)
        changed = [user for user in list(self.users) if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Use another node in place of one among the arguments."""

        def other(node: Node) -> Node:
            return new_input if node is old_input else node

        self._set(map_arg(self._args, other), map_arg(self._kwargs, other))

    def is_impure(self) -> bool:
        """Return whether the call matters although nobody uses its result."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_method":
            return self.target == "__setitem__" or (
                self.target.endswith("_") and not self.target.endswith("__")
            )
        if self.op == "call_module":
            owner = self.graph.owning_module
            return owner is not None and getattr(
                owner.get_submodule(self.target), "_is_impure", False
            )
        if self.op == "call_function":
            name = getattr(self.target, "__name__", "")
            op = getattr(self.target, "op", None)
            draws = isinstance(op, Op) and op.random  # what is drawn later depends on it
            known = self.target in _SIDE_EFFECTS or name in _CHECKS
            return known or draws or writes(self.target, self._kwargs)
        return False

    def is_magic(self) -> bool:
        """Return whether the function has a name like ``__add__``."""
        return getattr(self.target, "__name__", "").startswith("__")

    def format_node(self, *args: Any, **kwargs: Any) -> str | None:
        """Return a line about the node."""
        if self.op == "output":
            return f"return {self.args[0]}"
        kind = "" if self.type is None else f"{_type_name(self.type)} "
        line = (
            f"%{self.name} : {kind}[num_users={len(self.users)}] = "
            f"{self.op}[target={self._pretty_target()}]"
        )
        if self.op == "placeholder":
            return f"{line}(default={self.args[0]})" if self.args else line
        if self.op == "get_attr":
            return line
        return f"{line}(args = {_shown(self.args)}, kwargs = {_shown(self.kwargs)})"

    def _pretty_target(self) -> str:
        from .graph import qualified_name

        if isinstance(self.target, str):
            return self.target
        name = qualified_name(self.target)
        return f"builtins.{name}" if getattr(builtins, name, None) is self.target else name

    def __repr__(self) -> str:
        return self.name


def _type_name(kind: Any) -> str:
    """Return a type as lines about nodes name it."""
    from .graph import qualified_name

    if isinstance(kind, str):
        return repr(kind)
    is_class = isinstance(kind, type) and typing.get_origin(kind) is None
    return qualified_name(kind) if is_class else str(kind)


def _shown(value: Any) -> str:
    if isinstance(value, Node):
        return f"%{value.name}"
    if isinstance(value, tuple):
        inside = ", ".join(map(_shown, value))
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join([f"{key}: {_shown(item)}" for key, item in value.items()]) + "}"
    return str(value)


#: What an argument of a node may be besides nodes, and tuples, lists, dictionaries and slices of such.
base_types = (str, int, float, bool, complex, type(None), type(...), Tensor)
