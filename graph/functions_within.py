"""Functions within a function: which variables they take, and which do the same wherever they stand."""

from __future__ import annotations

import ast
from collections import Counter
from typing import Any

from .flow import SCOPES, Flow, captured, own_nodes

__all__ = ["defined_by", "functions_in", "scope_of", "unsettled_in", "written_within"]


def unsettled_in(tree: ast.FunctionDef) -> set[str]:
    """Return variables that may get another value after a function within the function took them."""
    nodes = [node for statement in tree.body for node in own_nodes(statement)]
    scopes = [node for node in nodes if isinstance(node, SCOPES)]
    if not scopes:
        return set()
    found: set[str] = set()
    for scope in scopes:
        names = captured(scope)
        for statement in tree.body:
            if (statement.end_lineno or statement.lineno) >= scope.lineno:
                flow = Flow(())
                flow.visit(statement)
                found |= names & flow.stored
    return found


def written_within(tree: ast.FunctionDef) -> tuple[set[str], set[str]]:
    """Return variables that functions within the function write, and the names of those functions."""
    written: set[str] = set()
    writers: set[str] = set()
    for node in [node for statement in tree.body for node in own_nodes(statement)]:
        if isinstance(node, SCOPES):
            names = {
                name for n in ast.walk(node) if isinstance(n, ast.Nonlocal) for name in n.names
            }
            written |= names
            if names and not isinstance(node, ast.Lambda):
                writers.add(node.name)
    return written, writers


def functions_in(tree: ast.FunctionDef, unsettled: set[str]) -> dict[str, Any]:
    """Return the statements that give a name, once, a function which takes nothing that changes later."""
    nodes = [node for statement in tree.body for node in own_nodes(statement)]
    stores = Counter(
        [n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    )
    stores.update([n.name for n in nodes if isinstance(n, (ast.FunctionDef, ast.ClassDef))])
    stores.update(
        [argument.arg for argument in ast.walk(tree.args) if isinstance(argument, ast.arg)]
    )
    found: dict[str, Any] = {}
    for node in nodes:
        name = defined_by(node)
        if not name or stores[name] > 1 or name in unsettled:
            continue
        scope = scope_of(node)
        plain = not (scope.args.defaults or any(scope.args.kw_defaults))
        if (
            plain
            and not getattr(scope, "decorator_list", None)
            and unsettled.isdisjoint(captured(scope))
        ):
            found[name] = node
    return found


def scope_of(statement: Any) -> Any:
    """Return the function that a statement gives a name."""
    return statement if isinstance(statement, ast.FunctionDef) else statement.value


def defined_by(statement: Any) -> str:
    """Return the name that a statement gives a function; "" if it does something else."""
    if isinstance(statement, ast.FunctionDef):
        return statement.name
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Lambda):
        target = statement.targets[0]
        if len(statement.targets) == 1 and isinstance(target, ast.Name):
            return target.id
    return ""
