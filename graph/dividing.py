"""Dividing: a function that is not captured whole runs as graphs before and after the line that breaks it.

The statements before and after that line become functions of their own, which take the variables that they
read and return those that are read later, and are compiled; the line itself stays where it is, and so does
what cannot be moved: ``return`` within a branch, ``del``, an import, a function that sees variables change.
Of a line within a loop, a branch, a ``with`` or ``try`` block the other statements of that block are moved
alike, but for those whose variables are seen after an error. One of these functions that breaks as well is
divided in turn, and so are functions that the line calls.

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

from .after_errors import seen_after_error
from .callees import by_way_of
from .flow import (
    LOOPS,
    SCOPES,
    Flow,
    captured,
    deleted,
    goes_through,
    leaves_loop,
    own_nodes,
    read_names,
)
from .functions_within import defined_by, functions_in, scope_of, unsettled_in, written_within
from .named_variables import NAMED, calls_of_locals, with_variables_of
from .sources import Source, code_of, source_of, sources

__all__ = ["divided", "written"]

#: Functions that call one of these stay whole: a variable may be seen by name. The latter two do with an
#: argument what they do anywhere.
_BY_NAME = frozenset({"eval", "exec", "vars", "dir"})
_OF_OBJECTS = frozenset({"vars", "dir"})
#: Statements with these stay where they are.
_STAYS = (
    ast.Return, ast.Delete, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Try, ast.TryStar,
    ast.Raise, ast.ClassDef, ast.Yield, ast.YieldFrom, ast.Await,
)  # fmt: skip
_OF_FUNCTION = frozenset({"super", "__class__", "locals"})
_BLOCKS = (ast.If, ast.With, ast.Try, ast.Match, *LOOPS)
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
    callee: Callable[[Any], Any] | None = None,
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
    callee : callable, optional
        Returns what is called in the place of what the line calls.

    Returns
    -------
    function or None
        None where nothing can be moved.
    """
    source = source_of(function)
    if source is None or _sees_by_name(source.tree):
        return None
    tree = source.tree
    division = _Division(function, source, line, make, owner, callee)
    parameters = {argument.arg for argument in ast.walk(tree.args) if isinstance(argument, ast.arg)}
    body = division.statements(tree.body, parameters, looped=False)
    if not division.parts:
        return None
    changed = copy.copy(tree)
    changed.body = body
    if calls_of_locals(tree):
        changed, division.parts[NAMED] = with_variables_of(function, changed)
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
        callee: Callable[[Any], Any] | None,
    ) -> None:
        self.of = function
        self.callee = callee
        self.source = source
        self.line = line
        self.make = make
        self.variables = {*function.__code__.co_varnames, *function.__code__.co_cellvars}
        nodes = list(_below(source.tree))
        self.reads = Counter(read_names(nodes))
        # Variables of others that it writes.
        self.globals = {
            name
            for node in nodes
            if isinstance(node, (ast.Global, ast.Nonlocal))
            for name in node.names
        }
        # Variables that functions within the function write, and the names of those functions.
        self.written, self.writers = written_within(source.tree)
        self.written &= self.variables
        self.unsettled = (unsettled_in(source.tree) | self.written) & self.variables
        if calls_of_locals(source.tree):  # which reads them all
            self.reads.update(self.variables)
        # The statements that define functions which do the same wherever they are defined.
        self.functions = functions_in(source.tree, self.unsettled)
        # Variables that are seen after an error in the block that is gone through.
        self.seen: set[str] = set()
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
            here = _has_line(statement, self.line)
            value = statement.value if isinstance(statement, ast.Return) else None
            ends = value is not None and self._moves(ast.Expr(value))
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
        for node in own_nodes(statement):
            if isinstance(node, _STAYS) or (isinstance(node, ast.Name) and node.id in _OF_FUNCTION):
                return False
            if isinstance(node, SCOPES) and not self.unsettled.isdisjoint(captured(node)):
                return False
        flow = Flow(())
        flow.visit(statement)
        stays = self.globals | self.unsettled | self.seen
        if not (self.written | self.writers).isdisjoint(flow.read | flow.stored):
            return False
        return not leaves_loop(statement) and stays.isdisjoint(flow.stored)

    def _opened(self, statement: ast.stmt, before: set[str], looped: bool) -> ast.stmt:
        """Return a statement that stays, with the blocks in it divided."""
        if not isinstance(statement, _BLOCKS):
            return self._calling(statement) if _has_line(statement, self.line) else statement
        flow = Flow(before)
        flow.enter(statement)
        changed: Any = self._calling(copy.copy(statement))
        if isinstance(changed, ast.Match):
            changed.cases = [self._case(case, before, looped) for case in changed.cases]
            return changed
        looped = looped or isinstance(statement, LOOPS)
        seen = self.seen
        if isinstance(statement, ast.Try) or (
            isinstance(statement, ast.With) and not goes_through(statement)
        ):
            self.seen = seen | seen_after_error(statement, self.reads, looped)
        changed.body = self.statements(changed.body, flow.assigned, looped)
        if isinstance(changed, ast.Try):
            for inner in changed.body:
                flow.visit(inner)
            changed.orelse = self.statements(changed.orelse, flow.assigned, looped)
        elif not isinstance(changed, ast.With):
            changed.orelse = self.statements(changed.orelse, before - deleted(changed), looped)
        self.seen = seen
        return changed

    def _case(self, case: ast.match_case, before: set[str], looped: bool) -> ast.match_case:
        flow = Flow(before)
        flow.match(case)
        changed = copy.copy(case)
        changed.body = self.statements(case.body, flow.assigned, looped)
        return changed

    def _calling(self, statement: ast.stmt) -> ast.stmt:
        """Return a statement of which functions that the breaking line calls may run in parts, too."""
        name = f"part {len(self.parts)}"
        changed = None if self.callee is None else by_way_of(name, statement, self.line)
        if changed is None or self.callee is None:
            return statement
        self.parts[name] = self.callee
        return changed

    def _part(self, run: list[ast.stmt], before: set[str], looped: bool) -> list[ast.stmt]:
        """Return what calls statements as a function; nothing where that cannot be."""
        flow, defined = self._with_functions(run)
        again = [
            statement for statement in run if self.functions.get(defined_by(statement)) is statement
        ]
        run = [*defined, *run]
        given = flow.read & self.variables
        stored = flow.stored & self.variables
        nodes = [node for statement in run for node in ast.walk(statement)]
        elsewhere = self.reads - Counter(read_names(nodes))
        kept = sorted(
            (
                stored
                & ({*elsewhere} | (given if looped else set()))
                - {*map(defined_by, (*again, *defined))}
            )
            | {name for statement in again for name in captured(scope_of(statement)) & stored}
        )
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
        return [ast.fix_missing_locations(ast.copy_location(done, run[0])), *again]

    def _with_functions(self, run: list[ast.stmt]) -> tuple[Flow, list[ast.stmt]]:
        """Return what statements do with variables, and which definitions of functions to put before them."""
        defined: list[ast.stmt] = []
        while True:
            flow = Flow(())
            for statement in [*defined, *run]:
                flow.visit(statement)
            more = [self.functions[name] for name in sorted(flow.read) if name in self.functions]
            more = [
                statement for statement in more if statement not in run and statement not in defined
            ]
            if not more:
                return flow, defined
            defined = [*more, *defined]

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


def _has_line(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _sees_by_name(tree: ast.FunctionDef) -> bool:
    """Return whether a function may look at its variables by name."""
    names = [n for n in _below(tree) if isinstance(n, ast.Name) and n.id in _BY_NAME]
    calls = [node for node in _below(tree) if isinstance(node, ast.Call) and node.args]
    of_objects = [call.func for call in calls if getattr(call.func, "id", "") in _OF_OBJECTS]
    of_locals = [n for n in _below(tree) if isinstance(n, ast.Name) and n.id == "locals"]
    return len(names) > len(of_objects) or len(of_locals) > len(calls_of_locals(tree))


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
