"""Flow: what the statements of a function do with its variables."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = [
    "LOOPS", "SCOPES", "Flow", "captured", "deleted", "goes_through", "leaves_loop", "own_nodes",
    "read_names",
]  # fmt: skip

#: Contexts that let errors through; another one might hide them, so that what follows runs.
_CONTEXTS = frozenset({
    "no_grad", "enable_grad", "inference_mode", "set_grad_enabled", "autocast", "device", "record_function",
    "profile", "fork_rng", "nullcontext", "catch_warnings", "open", "prefer", "sdpa_kernel", "closing",
    "redirect_stdout", "redirect_stderr", "detect_anomaly", "set_detect_anomaly", "save_on_cpu",
    "saved_tensors_hooks",
})  # fmt: skip
LOOPS = (ast.For, ast.While)
#: Functions and classes within a function, which have variables of their own.
SCOPES = (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


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
        if isinstance(statement, LOOPS):
            self.assigned -= deleted(statement)  # in the round before
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
        elif isinstance(node, SCOPES):
            self._scope(node)
        elif isinstance(node, (ast.Try, ast.TryStar)):
            self._tried(node)
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            self._comprehension(node)
        else:
            super().visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        """Note a variable that is read or stored."""
        if isinstance(node.ctx, ast.Del):
            self.assigned.discard(node.id)
            self.stored.add(node.id)
        elif isinstance(node.ctx, ast.Store):
            self.stored.add(node.id)
            self.assigned.add(node.id)
        elif node.id not in self.assigned:
            self.read.add(node.id)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Go through the value before the targets."""
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        """Note that the target may have got a value: it may be behind an ``and``."""
        self.visit(node.value)
        self.stored.add(node.target.id)

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
        else:
            self.assigned -= deleted(node)

    def visit_If(self, node: ast.If) -> None:
        """Keep what has a value after both branches."""
        self.enter(node)
        self.assigned = self._branch(node.body) & self._branch(node.orelse)

    def _repeated(self, node: ast.For | ast.While) -> None:
        before = set(self.assigned)
        self.enter(node)
        self._branch(node.body)
        self._branch(node.orelse)
        self.assigned = before - deleted(node)

    def _tried(self, node: Any) -> None:
        handlers = [statement for handler in node.handlers for statement in handler.body]
        for block in (node.body, node.orelse, handlers, node.finalbody):
            self._branch(block)
        self.stored |= {handler.name for handler in node.handlers if handler.name}
        self.assigned -= deleted(node)

    def visit_Match(self, node: ast.Match) -> None:
        """Keep what had a value before."""
        self.visit(node.subject)
        for case in node.cases:
            before = set(self.assigned)
            self.match(case)
            self._branch(case.body)
            self.assigned = before
        self.assigned -= deleted(node)

    def match(self, case: ast.match_case) -> None:
        """Go through what a case does before its block, which gives names of the pattern a value."""
        self.visit(case.pattern)
        for node in ast.walk(case.pattern):
            found = node.rest if isinstance(node, ast.MatchMapping) else getattr(node, "name", None)
            if found is not None:
                self.stored.add(found)
                self.assigned.add(found)
        if case.guard is not None:
            self.visit(case.guard)

    def _scope(self, node: Any) -> None:
        """Note what a function or class within the function takes from it, as if it were read at once."""
        outside = [] if isinstance(node, ast.Lambda) else [*node.decorator_list]
        if isinstance(node, ast.ClassDef):
            outside += [*node.bases, *node.keywords]
        else:
            outside += [*node.args.defaults, *[d for d in node.args.kw_defaults if d is not None]]
        for child in outside:
            self.visit(child)
        self.read |= captured(node) - self.assigned
        if not isinstance(node, ast.Lambda):
            self.stored.add(node.name)
            self.assigned.add(node.name)

    def _comprehension(self, node: Any) -> None:
        self.visit(node.generators[0].iter)
        targets = [generator.target for generator in node.generators]
        own = {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
        inner = Flow(self.assigned | own)
        inner.generic_visit(node)
        self.read |= inner.read
        self.stored |= inner.stored - own  # by assignments in expressions


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and those below it that belong to the same function."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, SCOPES):
            yield child
        else:
            yield from own_nodes(child)


def captured(scope: Any) -> set[str]:
    """Return the names that a function or class within a function may take from that."""
    nodes = list(ast.walk(scope))
    names = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    if isinstance(scope, ast.ClassDef):
        return names
    own = {argument.arg for argument in ast.walk(scope.args) if isinstance(argument, ast.arg)}
    return names - own if isinstance(scope, ast.Lambda) else names


def deleted(node: ast.AST) -> set[str]:
    """Return the variables that a statement may delete, as a handler does with the name of its error."""
    nodes = list(ast.walk(node))
    names = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Del)}
    return names | {n.name for n in nodes if isinstance(n, ast.ExceptHandler) and n.name}


def goes_through(node: ast.With) -> bool:
    """Return whether what follows a ``with`` block runs only if the block ran to its end."""
    for item in node.items:
        context = item.context_expr
        called = context.func if isinstance(context, ast.Call) else context
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if name not in _CONTEXTS:
            return False
    return True


def read_names(nodes: Iterable[ast.AST]) -> Iterable[str]:
    """Yield the variables that nodes read, each as often as they do."""
    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def leaves_loop(node: ast.AST) -> bool:
    """Return whether ``break`` or ``continue`` within a statement is of a loop around it."""
    if isinstance(node, (ast.Break, ast.Continue)):
        return True
    inside = node.orelse if isinstance(node, LOOPS) else ast.iter_child_nodes(node)
    return any([leaves_loop(child) for child in inside])
