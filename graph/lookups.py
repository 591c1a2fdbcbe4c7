"""Lookups: by which names the code of a program may read attributes of objects."""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator
from functools import cache, lru_cache
from types import CodeType
from typing import Any

from tensorplug.nn import Module

from .classes import LIBRARY, is_own, module_of

__all__ = [
    "handed_on", "is_read_by_name", "matches_classes",
    "methods_of", "names_in", "names_of_getter", "reads_all", "reads_always",
]  # fmt: skip

#: Names of what reads attributes of any names, or all of them.
_READERS = frozenset((
    "__dict__", "__getattribute__", "__getstate__", "__reduce__", "__reduce_ex__", "attrgetter", "dir",
    "format", "format_map", "getmembers", "locals", "vars",
))  # fmt: skip
_SPECIAL = frozenset([name for name in _READERS if name.startswith("__")])
_BY_ARGUMENT = frozenset(("delattr", "getattr", "hasattr", "setattr"))
#: Steps of code that put an argument on the stack, which calls nothing.
_PLAIN_STEPS = (
    "LOAD_FAST",
    "LOAD_GLOBAL",
    "LOAD_DEREF",
    "LOAD_NAME",
    "LOAD_ATTR",
    "LOAD_CONST",
    "PUSH_NULL",
)
_IGNORED = frozenset(("PRECALL", "CACHE", "KW_NAMES", "EXTENDED_ARG", "NOP"))
#: Whether methods are loaded like attributes, and whether the mark of what is called follows it.
_MARKS_ATTRIBUTES = sys.version_info >= (3, 12)
_MARKS_AFTER = sys.version_info >= (3, 13)
#: Modules of this library whose classes have their attributes read by their own methods alone.
_BY_METHODS = (LIBRARY + "optim",)


def names_in(code: CodeType) -> Iterator[str]:
    """Return the names in code, and the strings that it has, which may be names."""
    yield from (*code.co_names, *code.co_freevars, *code.co_varnames)
    todo: list[Any] = [*code.co_consts]
    while todo:
        constant = todo.pop()
        if type(constant) is str:
            yield constant
        elif type(constant) in (tuple, frozenset):
            todo += constant


@lru_cache(4096)
def handed_on(code: CodeType) -> frozenset[str]:
    """Return the names of which code uses what they stand for otherwise than by calling it there.

    Before those of attributes there is a dot.
    """
    steps = [step for step in dis.get_instructions(code) if step.opname not in _IGNORED]
    called = set(_places_of_calls(steps))
    found: set[str] = set()
    for number, step in enumerate(steps):
        if step.opname.startswith(("LOAD_", "IMPORT_FROM")) and number not in called:
            names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
            dot = "." if step.opname in ("LOAD_ATTR", "IMPORT_FROM") else ""
            found.update([dot + used for used in names if isinstance(used, str)])
    return frozenset(found)


def _places_of_calls(steps: list[dis.Instruction]) -> Iterator[int]:
    """Return which steps of code load what is called next, as the mark tells that Python puts beside it."""
    for number, step in enumerate(steps):
        marked = bool((step.arg or 0) & 1)
        if step.opname == "LOAD_METHOD" or (
            _MARKS_ATTRIBUTES and step.opname == "LOAD_ATTR" and marked
        ):
            yield number
        elif step.opname == "PUSH_NULL" and _MARKS_AFTER:
            yield number - 1
        elif step.opname == "PUSH_NULL" or (step.opname == "LOAD_GLOBAL" and marked):
            place = number + (step.opname == "PUSH_NULL")
            while (
                steps[place + 1].opname == "LOAD_ATTR"
            ):  # the mark stands before `module.function`
                place += 1
            yield place


def names_of_getter(getter: Any) -> list[str]:
    """Return the names by which an ``attrgetter`` or ``methodcaller`` reads."""
    names = [name for name in getter.__reduce__()[1] if isinstance(name, str)]
    return [part for name in names for part in name.split(".")]


@lru_cache(4096)
def reads_all(code: CodeType) -> bool:
    """Return whether code may read attributes by names that do not stand in it."""
    used = frozenset(code.co_names)
    if used & _READERS or not _SPECIAL.isdisjoint(names_in(code)):
        return True
    return bool(used & _BY_ARGUMENT) and not _by_constants(code)


@lru_cache(4096)
def matches_classes(code: CodeType) -> bool:
    """Return whether code compares with patterns of classes."""
    return any([step.opname == "MATCH_CLASS" for step in dis.get_instructions(code)])


def _by_constants(code: CodeType) -> bool:
    """Return whether each ``getattr`` in code, and its like, has a name that stands there."""
    steps = [step for step in dis.get_instructions(code) if step.opname not in _IGNORED]
    for number, step in enumerate(steps):
        if step.argval not in _BY_ARGUMENT:
            continue
        if step.opname not in ("LOAD_GLOBAL", "LOAD_NAME"):
            return False
        arguments = []
        for later in steps[number + 1 :]:
            if not later.opname.startswith(_PLAIN_STEPS):
                break
            if later.opname != "PUSH_NULL":
                arguments.append(later)
        else:
            return False
        constants = [later for later in arguments if later.opname == "LOAD_CONST"]
        if not constants or type(constants[0].argval) is not str:
            return False
        # The name is the second argument: nothing but the object, which may be an attribute, is before it.
        before = [
            later
            for later in arguments[: arguments.index(constants[0])]
            if not later.opname.startswith("LOAD_ATTR")
        ]
        after = arguments[arguments.index(constants[0]) + 1 :]
        if len(before) != 1 or len(after) > 1 or not later.opname.startswith("CALL"):
            return False
    return True


def is_read_by_name(value: Any) -> bool:
    """Return whether an object's attributes are read by code that is seen: that of classes of programs.

    Those of optimizers and schedulers are read by their methods, too: see :func:`methods_of`.
    """
    if _has_methods(type(value)):
        return True
    if not is_own(type(value)):
        return False
    table = vars(value)  # a module that is being made may have no hooks yet
    return not any([table.get(hooks) for hooks in ("_forward_hooks", "_forward_pre_hooks")])


@lru_cache(512)
def methods_of(kind: Any) -> frozenset[str]:
    """Return the methods that read attributes of an object without a program's naming these."""
    if not _has_methods(kind):
        return frozenset()
    names = [name for name in dir(kind) if not name.startswith("__")]
    return frozenset([name for name in names if callable(getattr(kind, name, None))])


def _has_methods(kind: type) -> bool:
    return any([module_of(base).startswith(_BY_METHODS) for base in kind.__mro__])


@cache
def _of_modules() -> frozenset[str]:
    return frozenset(vars(Module()))


def reads_always(name: Any) -> bool:
    """Return whether an attribute may be read without its name in a program's code."""
    return not isinstance(name, str) or name.startswith("__") or name in _of_modules()
