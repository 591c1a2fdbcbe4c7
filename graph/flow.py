"""Flow: what the statements of a function do with its variables."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

__all__ = ["LOOPS", "Flow", "goes_through"]

#: Contexts that let errors through; another one might hide them, so that what follows runs.
_CONTEXTS = frozenset({
    "no_grad", "enable_grad", "inference_mode", "set_grad_enabled", "autocast", "device", "record_function",
    "profile", "fork_rng", "nullcontext", "catch_warnings", "open",
})  # fmt: skip
LOOPS = (ast.For, ast.While)


class Flow(ast.NodeVisitor):
    """What statements do with variables, in the order in which they run.

    Attributes
    ----------
    assigned : set of str
        Variables that have a value by then, whichever way was taken.
    read, stored : set of str
        Those read before these statements gave them a value, and those that they may give one.
    """

    def __init__(self, assigned: Iterable[str]) -> None:
        self.assigned = set(assigned)
        self.read: set[str] = set()
        self.stored: set[str] = set()

    def after(self, statement: ast.stmt) -> set[str]:
        """Return the variables that have a value after a statement."""
        self.visit(statement)
        return self.assigned

    def enter(self, statement: ast.stmt) -> None:
        """Go through what a compound statement does before its block."""
        if isinstance(statement, (ast.If, ast.While)):
            self.visit(statement.test)
        elif isinstance(statement, ast.For):
            self.visit(statement.iter)
            self.visit(statement.target)
        elif isinstance(statement, ast.With):
            for item in statement.items:
                self.visit(item)

    def _branch(self, statements: Iterable[ast.stmt]) -> set[str]:
        """Go through statements that may not run; return what has a value after them."""
        before = set(self.assigned)
        for statement in statements:
            self.visit(statement)
        after, self.assigned = self.assigned, before
        return after

    def visit(self, node: ast.AST) -> None:
        """Go through a node."""
        if isinstance(node, LOOPS):
            self._repeated(node)
        elif isinstance(node, (ast.Try, ast.TryStar)):
            self._tried(node)
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            self._comprehension(node)
        else:
            super().visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        """Note a variable that is read or stored."""
        if isinstance(node.ctx, ast.Store):
            self.stored.add(node.id)
            self.assigned.add(node.id)
        elif node.id not in self.assigned:
            self.read.add(node.id)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Go through the value before the targets."""
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Note that the target is read, too."""
        if isinstance(node.target, ast.Name):
            self.visit(ast.Name(node.target.id, ast.Load()))
        self.visit(node.value)
        self.visit(node.target)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Leave out the annotation, which is not evaluated."""
        if node.value is not None:
            self.visit(node.value)
            self.visit(node.target)

    def visit_With(self, node: ast.With) -> None:
        """Go through a block, which may end early in some contexts."""
        self.enter(node)
        after = self._branch(node.body)
        if goes_through(node):
            self.assigned = after

    def visit_If(self, node: ast.If) -> None:
        """Keep what has a value after both branches."""
        self.enter(node)
        self.assigned = self._branch(node.body) & self._branch(node.orelse)

    def _repeated(self, node: ast.For | ast.While) -> None:
        before = set(self.assigned)
        self.enter(node)
        self._branch(node.body)
        self._branch(node.orelse)
        self.assigned = before

    def _tried(self, node: Any) -> None:
        handlers = [statement for handler in node.handlers for statement in handler.body]
        for block in (node.body, node.orelse, handlers, node.finalbody):
            self._branch(block)
        self.assigned -= {handler.name for handler in node.handlers}  # which are deleted

    def visit_Match(self, node: ast.Match) -> None:
        """Keep what had a value before."""
        before = set(self.assigned)
        self.generic_visit(node)
        self.assigned = before

    def _comprehension(self, node: Any) -> None:
        self.visit(node.generators[0].iter)
        targets = [generator.target for generator in node.generators]
        own = {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
        inner = Flow(self.assigned | own)
        inner.generic_visit(node)
        self.read |= inner.read


def goes_through(node: ast.With) -> bool:
    """Return whether what follows a ``with`` block runs only if the block ran to its end."""
    for item in node.items:
        context = item.context_expr
        called = context.func if isinstance(context, ast.Call) else context
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if name not in _CONTEXTS:
            return False
    return True
