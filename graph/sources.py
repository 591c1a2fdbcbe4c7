"""The source of functions as trees, and functions of trees.

The tree comes from the file; that it is what runs is shown by compiling it, which has to give the same
instructions.
"""

from __future__ import annotations
import __future__

import ast
import copy
import functools
import linecache
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

__all__ = ["Source", "code_of", "source_of", "sources"]

#: The flags that imports from __future__ leave in code.
_FUTURE = sum({getattr(__future__, name).compiler_flag for name in __future__.all_feature_names})


class Source(NamedTuple):
    """A function's definition, and the names that its module imports, whose calls are other instructions."""

    tree: ast.FunctionDef
    imports: list[ast.alias]


#: What functions made here were made of.
sources: WeakKeyDictionary[FunctionType, Source] = WeakKeyDictionary()


def source_of(function: FunctionType) -> Source | None:
    """Return what a function is made of, without decorators; None where that is not what runs."""
    if function in sources:
        return sources[function]
    code = function.__code__
    linecache.checkcache(code.co_filename)
    module = _module("".join(linecache.getlines(code.co_filename)))
    for tree in ast.walk(module):
        if not isinstance(tree, ast.FunctionDef) or tree.name != code.co_name:
            continue
        if getattr(tree, "type_params", None):  # which are a scope of their own
            continue
        if min([tree.lineno, *[decorator.lineno for decorator in tree.decorator_list]]) == (
            code.co_firstlineno
        ):
            bare = copy.copy(tree)
            bare.decorator_list, bare.returns = [], None
            bare.args = _bare(tree.args)
            source = Source(bare, list(_imported(module)))
            made = code_of(source, code.co_freevars, code)
            return source if _instructions(made) == _instructions(code) else None
    return None


@functools.lru_cache(8)
def _module(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return ast.Module([], [])


def _imported(node: ast.AST) -> Iterator[ast.alias]:
    """Yield the names that a module imports at its top."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield from [name for name in child.names if name.name != "*"]
        elif not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield from _imported(child)


def _bare(arguments: ast.arguments) -> ast.arguments:
    """Return parameters without what is evaluated where the function is defined."""
    bare = copy.copy(arguments)
    bare.defaults, bare.kw_defaults = [], [None] * len(arguments.kwonlyargs)
    for name in ("posonlyargs", "args", "kwonlyargs"):
        setattr(bare, name, [_plain(argument) for argument in getattr(arguments, name)])
    bare.vararg = arguments.vararg and _plain(arguments.vararg)
    bare.kwarg = arguments.kwarg and _plain(arguments.kwarg)
    return bare


def _plain(argument: ast.arg) -> ast.arg:
    return ast.copy_location(ast.arg(argument.arg), argument)


def code_of(source: Source, free: Iterable[str], of: CodeType) -> CodeType:
    """Return the code of a function with some free variables, as that of a function of the same file."""
    around = copy.copy(source.tree)
    around.args = ast.arguments([], [ast.arg(name) for name in free], None, [], [], None, [])
    around.body = [source.tree]
    imports = [ast.Import(source.imports)] if source.imports else []
    module = ast.Module([*imports, around], [])
    ast.fix_missing_locations(ast.copy_location(module, source.tree))
    flags = of.co_flags & _FUTURE
    code = compile(module, of.co_filename, "exec", flags=flags, dont_inherit=True)
    for _ in range(2):
        code = next(constant for constant in code.co_consts if isinstance(constant, CodeType))
    return code


def _instructions(code: CodeType) -> tuple[Any, ...]:
    """Return what code does, in a form that can be compared: 1, True and 1.0 are different constants."""
    constants = [
        _instructions(item) if isinstance(item, CodeType) else repr(item) for item in code.co_consts
    ]
    return code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants
