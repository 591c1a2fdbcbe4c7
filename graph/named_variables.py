"""Variables by name: a function that calls ``locals()`` sees those that it had before it was divided."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from .flow import SCOPES

__all__ = ["NAMED", "calls_of_locals", "with_variables_of"]

#: What the function is called, in a function that is divided, which returns the variables; no variable is.
NAMED = "part of locals"
_INNER = (*SCOPES, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def calls_of_locals(tree: ast.FunctionDef) -> list[ast.Call]:
    """Return the calls of ``locals()`` that a function makes for its own variables."""
    return [node for statement in tree.body for node in _own(statement) if _is_call(node)]


def _own(node: ast.AST) -> Iterator[Any]:
    """Yield a node and those below it whose variables are the function's."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _INNER):
            yield from _own(child)


def _is_call(node: ast.AST) -> bool:
    name = node.func if isinstance(node, ast.Call) and not node.args and not node.keywords else None
    return isinstance(name, ast.Name) and name.id == "locals"


def with_variables_of(
    function: FunctionType, tree: ast.FunctionDef
) -> tuple[ast.FunctionDef, Callable[[dict[str, Any]], dict[str, Any]]]:
    """Return a tree whose ``locals()`` go by way of :data:`NAMED`, and what stands under that name."""
    code = function.__code__
    order = dict.fromkeys([*code.co_varnames, *code.co_cellvars, *code.co_freevars])

    def named(variables: dict[str, Any]) -> dict[str, Any]:
        return {name: variables[name] for name in order if name in variables}

    changed = copy.deepcopy(tree)
    for call in calls_of_locals(changed):
        inner = copy.copy(call)
        call.func, call.args = ast.copy_location(ast.Name(NAMED, ast.Load()), call), [inner]
    return ast.fix_missing_locations(changed), named
