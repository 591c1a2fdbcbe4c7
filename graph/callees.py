"""Callees: functions that the line calls which breaks the graph of its own, compiled each by itself."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE
from types import CodeType, FunctionType, MethodType
from typing import Any

from .classes import goes_in_its_own_way, is_foreign
from .flow import SCOPES

__all__ = ["Called", "by_way_of"]

#: What compound statements evaluate before their blocks.
_HEADS: dict[type, tuple[str, ...]] = {
    ast.If: ("test",), ast.While: ("test",), ast.For: ("iter",), ast.With: ("items",),
    ast.Match: ("subject",), ast.Try: (),
}  # fmt: skip
#: For how many objects a method is compiled.
_OBJECTS = 16
_WAITS = CO_COROUTINE | CO_ASYNC_GENERATOR


class Called:
    """The functions that a line calls which breaks the graph of its own: compiled each by itself.

    A function that is made anew for each call, and a method of ever other objects, stays as it is.

    Parameters
    ----------
    make : callable
        Returns the compiled form of a function.
    """

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make = make
        # By the code and what a method is called with: the function, and its compiled form.
        self._known: dict[tuple[CodeType, int], tuple[Any, Any]] = {}
        self._counts: dict[CodeType, int] = {}

    def of(self, function: Any) -> Any:
        """Return what is called in the place of something."""
        plain, owner = function, None
        if type(function) is MethodType:
            plain, owner = function.__func__, function.__self__
        if type(plain) is not FunctionType or is_foreign(plain.__module__ or ""):
            return function
        if goes_in_its_own_way(owner):
            return function
        code = plain.__code__
        key = code, id(owner)
        known = self._known.get(key)
        if known is not None and known[0] is plain:
            return known[1]
        count = self._counts.get(code, 0)
        if known is not None or count == _OBJECTS:
            count = _OBJECTS + 1
            self._known = {k: v for k, v in self._known.items() if k[0] is not code}
        if count > _OBJECTS or code.co_flags & _WAITS:
            return function
        self._counts[code] = count + 1
        compiled = self._make(function)
        self._known[key] = plain, compiled
        return compiled


def by_way_of(name: str, statement: Any, line: int) -> Any:
    """Return a statement whose calls at a line go by way of a function of some name; None if it makes none.

    Of a compound statement only what is before its block.
    """
    heads = _HEADS.get(type(statement))
    calls = _Calls(name, 0 if heads is None else line)
    if heads is None:
        changed = calls.visit(copy.deepcopy(statement))
    else:
        changed = copy.copy(statement)
        for head in heads:
            value = copy.deepcopy(getattr(changed, head))
            several = isinstance(value, list)
            setattr(changed, head, [*map(calls.visit, value)] if several else calls.visit(value))
    return ast.fix_missing_locations(changed) if calls.found else None


class _Calls(ast.NodeTransformer):
    """Has calls go by way of a function, which returns what is called in the place of what it gets."""

    def __init__(self, name: str, line: int) -> None:
        self.name = name
        self.line = line  # of a head: whether the line is in it
        self.found = False

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Have a call go by way of the function."""
        self.generic_visit(node)
        called = node.func
        if isinstance(called, ast.Name) and called.id in _NO_FUNCTIONS:
            return node
        if self.line and not node.lineno <= self.line <= (node.end_lineno or node.lineno):
            return node
        self.found = True
        node.func = ast.copy_location(
            ast.Call(ast.Name(self.name, ast.Load()), [called], []), called
        )
        return node

    def visit(self, node: ast.AST) -> Any:
        """Leave what runs later, or once for each item."""
        return node if isinstance(node, (*SCOPES, ast.GeneratorExp)) else super().visit(node)


#: What statements call that is no function of the program's.
_NO_FUNCTIONS = frozenset({
    "super", "locals", "print", "len", "range", "float", "int", "bool", "str", "isinstance", "list",
    "tuple", "dict", "type", "zip", "enumerate", "repr", "getattr", "setattr", "hasattr", "sum", "min",
    "max", "sorted",
})  # fmt: skip
