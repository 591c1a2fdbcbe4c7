"""Dividing: a function that is not captured whole runs as graphs before and after the line that breaks it.

The statements before and after that line become functions of their own, which take the variables that they
read and return those that are read later, and are compiled; the line itself stays where it is, and so does
what cannot be moved: ``return`` within a branch, ``try``, ``del``, an import. Of a line within a loop, a
branch or a ``with`` block the other statements of that block are moved alike. One of these functions that
breaks as well is divided in turn.

That is compilers' outlining, on the syntax tree.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from types import CellType, FunctionType, MethodType
from typing import Any

from tensorplug.nn import Module

from .flow import LOOPS, Flow, goes_through
from .sources import Source, code_of, source_of, sources

__all__ = ["divided", "written"]

#: Functions with these stay whole: a variable of theirs may be seen by name, or from another function.
_WHOLE = (
    ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Nonlocal, ast.NamedExpr,
    ast.Yield, ast.YieldFrom, ast.Await,
)  # fmt: skip
_BY_NAME = frozenset({"locals", "vars", "dir", "eval", "exec"})
#: Statements with these stay where they are.
_STAYS = (
    ast.Return, ast.Delete, ast.Import, ast.ImportFrom, ast.Global, ast.Try, ast.TryStar, ast.Match,
    ast.Raise,
)  # fmt: skip
_OF_CLASSES = frozenset({"super", "__class__"})
_BLOCKS = (ast.If, ast.With, *LOOPS)
_COMPUTES = (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare)


def written(function: Any) -> tuple[FunctionType | None, Any]:
    """Return the function of Python's that a function, method or module runs, and what it is called with."""
    owner = None
    if isinstance(function, MethodType):
        function, owner = function.__func__, function.__self__
    elif isinstance(function, Module) and "forward" not in vars(function):
        function, owner = type(function).forward, function
    return (function if isinstance(function, FunctionType) else None), owner


def divided(
    function: FunctionType,
    line: int,
    make: Callable[[FunctionType, bool], Callable[..., Any]],
    owner: Any = None,
) -> FunctionType | None:
    """Return a function that does the same, with what lies before and after a line in functions of their own.

    Parameters
    ----------
    function : function
        One written in Python, whose file is there.
    line : int
        One of its lines.
    make : callable
        ``make(part, ends)`` returns what takes the place of a part: called with the part's variables, it
        returns what the part does: a tuple of variables or, if it `ends` the function, the result.
    owner : object, optional
        What the function is a method of. A part that only reads attributes of a module takes these in its
        place, and so does not depend on the others.

    Returns
    -------
    function or None
        None where nothing can be moved.
    """
    source = source_of(function)
    if source is None or any([isinstance(node, _WHOLE) for node in _below(source.tree)]):
        return None
    tree = source.tree
    names = [node for node in _below(tree) if isinstance(node, ast.Name)]
    if any([name.id in _BY_NAME or isinstance(name.ctx, ast.Del) for name in names]):
        return None
    division = _Division(function, source, line, make, owner)
    parameters = {argument.arg for argument in ast.walk(tree) if isinstance(argument, ast.arg)}
    body = division.statements(tree.body, parameters, looped=False)
    if not division.parts:
        return None
    changed = copy.copy(tree)
    changed.body = body
    return division.function(changed, division.parts)


class _Division:
    """One function that is divided at one line."""

    def __init__(
        self,
        function: FunctionType,
        source: Source,
        line: int,
        make: Callable[[FunctionType, bool], Callable[..., Any]],
        owner: Any,
    ) -> None:
        self.of = function
        self.source = source
        self.line = line
        self.make = make
        self.variables = {*function.__code__.co_varnames, *function.__code__.co_cellvars}
        nodes = list(_below(source.tree))
        self.reads = Counter(_read_names(nodes))
        self.globals = {n for node in nodes if isinstance(node, ast.Global) for n in node.names}
        self.parts: dict[str, Callable[..., Any]] = {}
        # The parameter that is the module, of which this is a method, and its attributes that are values.
        first = source.tree.args.args[:1]
        self.module = first[0].arg if first and isinstance(owner, Module) else ""
        self.fields = _fields(owner) if self.module else frozenset()

    # --- statements ---

    def statements(
        self, body: Sequence[ast.stmt], before: set[str], looped: bool
    ) -> list[ast.stmt]:
        """Return statements with those that can be moved in functions; `before` are variables with values."""
        result: list[ast.stmt] = []
        run: list[ast.stmt] = []
        assigned = set(before)

        def put(statements: list[ast.stmt]) -> None:
            nonlocal assigned
            for statement in statements:
                assigned = Flow(assigned).after(statement)
            result.extend(statements)

        for statement in body:
            here = statement.lineno <= self.line <= (statement.end_lineno or statement.lineno)
            ends = isinstance(statement, ast.Return) and statement.value is not None
            moves = not here and (ends or self._moves(statement))
            if moves:
                run.append(statement)
            while run and (ends or not moves or statement is body[-1]):
                count, done = self._moved(run, assigned, looped)
                put(done)
                run = run[count:]
            if not moves:
                put([self._opened(statement, assigned, looped)])
        return result

    def _moved(
        self, run: list[ast.stmt], before: set[str], looped: bool
    ) -> tuple[int, list[ast.stmt]]:
        """Return how many statements find the values that they need, and what calls them as a function."""
        for count in range(len(run), 0, -1):
            done = self._part(run[:count], before, looped)
            if done:
                return count, done
        return 1, [self._opened(run[0], before, looped)]

    def _moves(self, statement: ast.stmt) -> bool:
        """Return whether a statement does the same in a function of its own."""
        for node in ast.walk(statement):
            if isinstance(node, _STAYS) or (isinstance(node, ast.Name) and node.id in _OF_CLASSES):
                return False
        flow = Flow(())
        flow.visit(statement)
        return not _leaves_loop(statement) and self.globals.isdisjoint(flow.stored)

    def _opened(self, statement: ast.stmt, before: set[str], looped: bool) -> ast.stmt:
        """Return a statement that stays, with the blocks in it divided."""
        if not isinstance(statement, _BLOCKS):
            return statement
        if isinstance(statement, ast.With) and not goes_through(statement):
            return statement  # after an error, what was assigned before it would be missed
        flow = Flow(before)
        flow.enter(statement)
        changed = copy.copy(statement)
        looped = looped or isinstance(statement, LOOPS)
        changed.body = self.statements(changed.body, flow.assigned, looped)
        if not isinstance(changed, ast.With):
            changed.orelse = self.statements(changed.orelse, before, looped)
        return changed

    def _part(self, run: list[ast.stmt], before: set[str], looped: bool) -> list[ast.stmt]:
        """Return what calls statements as a function; nothing where that cannot be."""
        flow = Flow(())
        for statement in run:
            flow.visit(statement)
        given = flow.read & self.variables
        stored = flow.stored & self.variables
        nodes = [node for statement in run for node in ast.walk(statement)]
        elsewhere = self.reads - Counter(_read_names(nodes))
        kept = sorted(stored & ({*elsewhere} | (given if looped else set())))
        given |= {name for name in kept if name not in flow.assigned}
        if not given <= before:
            return []
        if not any([isinstance(node, _COMPUTES) for node in nodes]):
            return run
        read = _FieldsRead(self.module, self.fields)
        if self.module in given and not read.otherwise(run):
            run = [read.visit(copy.deepcopy(statement)) for statement in run]
            given.remove(self.module)
        values: dict[str, ast.expr] = {name: ast.Name(name, ast.Load()) for name in sorted(given)}
        values |= read.found
        ends = isinstance(run[-1], ast.Return)
        end = ast.Return(ast.Tuple([ast.Name(name, ast.Load()) for name in kept], ast.Load()))
        part = copy.copy(self.source.tree)
        arguments = [ast.arg(name) for name in values]
        part.args = ast.arguments([], arguments, None, [], [], None, [])
        part.body = run if ends else [*run, end]
        ast.copy_location(part, run[0])
        name = f"part {len(self.parts)}"  # which no variable is called
        made = self.function(part, {})
        sources[made] = self.source._replace(tree=part)
        self.parts[name] = self.make(made, ends)
        call = ast.Call(ast.Name(name, ast.Load()), list(values.values()), [])
        done: ast.stmt = ast.Expr(call)
        if ends:
            done = ast.Return(call)
        elif kept:
            target = ast.Tuple([ast.Name(name, ast.Store()) for name in kept], ast.Store())
            done = ast.Assign([target], call)
        return [ast.fix_missing_locations(ast.copy_location(done, run[0]))]

    # --- functions ---

    def function(self, tree: ast.FunctionDef, parts: dict[str, Any]) -> FunctionType:
        """Return the function of a tree, in the place of the one that is divided."""
        of = self.of
        cells = dict(zip(of.__code__.co_freevars, of.__closure__ or (), strict=True))
        cells |= {name: CellType(part) for name, part in parts.items()}
        code = code_of(self.source._replace(tree=tree), cells, of.__code__)
        closure = tuple([cells[name] for name in code.co_freevars])
        made = FunctionType(code, of.__globals__, of.__name__, None, closure)
        made.__qualname__, made.__module__ = of.__qualname__, of.__module__
        if parts:
            made.__defaults__, made.__kwdefaults__ = of.__defaults__, of.__kwdefaults__
        return made


class _FieldsRead(ast.NodeTransformer):
    """Has statements read variables in the place of some attributes of an object.

    Attributes
    ----------
    found : dict
        For each such variable the attribute.
    """

    def __init__(self, name: str, fields: frozenset[str]) -> None:
        self.name = name
        self.fields = fields
        self.found: dict[str, ast.expr] = {}

    def otherwise(self, statements: Iterable[ast.stmt]) -> bool:
        """Return whether statements use the object in another way, too."""
        nodes = [node for statement in statements for node in ast.walk(statement)]
        uses = [node for node in nodes if isinstance(node, ast.Name) and node.id == self.name]
        return len(uses) > len([node for node in nodes if self._is_field(node)])

    def _is_field(self, node: ast.AST) -> bool:
        return (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Load)
            and isinstance(node.value, ast.Name)
            and node.value.id == self.name
            and node.attr in self.fields
        )

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if not self._is_field(node):
            return self.generic_visit(node)
        variable = f"{self.name}.{node.attr}"
        self.found.setdefault(variable, node)
        return ast.copy_location(ast.Name(variable, ast.Load()), node)


def _fields(module: Module) -> frozenset[str]:
    """Return the attributes of a module that reading gives as they are, and that do not change by it."""
    kind = type(module)
    if (
        kind.__getattr__ is not Module.__getattr__
        or kind.__getattribute__ is not object.__getattribute__
    ):
        return frozenset()
    tables = (vars(module), module._parameters, module._buffers, module._modules)
    names = {name for table in tables for name in table}
    return frozenset([name for name in names if not hasattr(kind, name)])


def _below(tree: ast.FunctionDef) -> Iterable[ast.AST]:
    """Yield the nodes of a function's body."""
    for statement in tree.body:
        yield from ast.walk(statement)


def _read_names(nodes: Iterable[ast.AST]) -> Iterable[str]:
    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def _leaves_loop(node: ast.AST) -> bool:
    """Return whether ``break`` or ``continue`` within a statement is of a loop around it."""
    if isinstance(node, (ast.Break, ast.Continue)):
        return True
    inside = node.orelse if isinstance(node, LOOPS) else ast.iter_child_nodes(node)
    return any([_leaves_loop(child) for child in inside])
