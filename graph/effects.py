"""Effects: functions written in C that a program may not call, if its ops are to be all that it does.

Of such a function nothing is seen but the call, and not even that where another function in C calls it
(`map(print, …)`), or if it is a class. So programs may call, and hand on, those alone that are known to do
nothing besides returning a value, or changing what is compared anyhow (:mod:`.state`). What Python's own
modules call on their behalf is too much to be refused: there only those are that are known to do more. The
tables are in :mod:`.c_modules`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    FrameType,
    FunctionType,
    MethodDescriptorType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

from .c_modules import (
    EFFECTS,
    IMPURE_CLASSES,
    IMPURE_METHODS,
    IMPURE_MODULES,
    INTERPRETER,
    OF_PURE_CLASSES,
    PURE,
    PURE_KINDS,
    PURE_MODULES,
    SYSTEM,
)
from .classes import LIBRARY, is_standard, module_of

__all__ = [
    "does_more_when_called",
    "home_of",
    "is_asked_for",
    "is_handed_on_with_more",
    "is_impure",
    "may_do_more",
]

_PACKAGE = LIBRARY.rstrip(".")
#: What Cython calls the class of functions, of whose calls nobody is told.
_COMPILED_FUNCTION = "cython_function_or_method"

#: Methods in C that stand by themselves, taken from their class.
_UNBOUND = (ClassMethodDescriptorType, MethodDescriptorType, WrapperDescriptorType)


def is_asked_for(frame: FrameType | None) -> bool:
    """Return whether a function of Python's library runs for the program, not for this library."""
    while frame is not None and is_standard(_name_of(frame)):
        frame = frame.f_back
    return frame is not None and not _name_of(frame).startswith(LIBRARY)


def is_impure(function: Callable[..., Any], frame: FrameType) -> bool:
    """Return whether a function in C differs from call to call, or may do something besides."""
    caller = _name_of(frame)
    if caller.startswith(LIBRARY):
        return False
    if id(function) in EFFECTS:
        return True
    if id(function) in INTERPRETER:  # Python's own modules do so for nothing that programs see
        if caller == "inspect" and function is not id:
            return is_asked_for(frame)
        return not is_standard(caller) and frame.f_code.co_name != "__hash__"
    if is_standard(caller) or caller.startswith("numpy."):
        return _does_more_within(function)
    return may_do_more(function)


def _does_more_within(function: Callable[..., Any]) -> bool:
    """Return whether a function in C does more than is seen when one of Python's own modules calls it."""
    home = home_of(function)
    if home == "_io":  # streams that such a module finds by itself, as that of standard output
        return not isinstance(getattr(function, "__self__", None), PURE_KINDS)
    return _is_impure_module(home) or id(function) in SYSTEM


def may_do_more(function: Any) -> bool:
    """Return whether a function in C may differ from call to call, or do more than is seen."""
    if id(function) in EFFECTS or id(function) in INTERPRETER:
        return True
    home = home_of(function)
    if _is_impure_module(home) or (home, function.__name__) in IMPURE_METHODS:
        return True
    if _is_known(home):
        return False
    owner = getattr(function, "__self__", None)
    return not (id(function) in PURE or isinstance(owner, PURE_KINDS))


def does_more_when_called(value: Any) -> bool:
    """Return whether a call of something may do more, and nobody is told of that call."""
    if isinstance(value, type):
        return any([_makes_more(base) for base in value.__mro__])
    if type(value).__name__ == _COMPILED_FUNCTION:
        home = str(value.__module__ or "")
        return _is_impure_module(home) or not _is_known(home)
    return False


def is_handed_on_with_more(value: Any) -> bool:
    """Return whether what gets a value may call it, and so do more, and nobody is told of that call."""
    if isinstance(value, (BuiltinFunctionType, MethodWrapperType, *_UNBOUND)):
        return may_do_more(value)
    return not isinstance(value, type) and does_more_when_called(value)


def _makes_more(kind: type) -> bool:
    """Return whether making an object of a class in C may do something, or differ."""
    if kind in IMPURE_CLASSES:
        return True
    module = module_of(kind)
    if module.partition(".")[0] in OF_PURE_CLASSES:
        return False
    if _is_impure_module(module) or _is_known(module):
        return _is_impure_module(module)
    found = sys.modules.get(module)
    file = getattr(found, "__file__", None)
    return (
        found is not None
        and (file is None or not file.endswith((".py", ".pyc")))
        and module != "__main__"
    )


def _is_known(home: str) -> bool:
    """Return whether functions of a module are this library's, or said to do nothing besides."""
    top = home.partition(".")[0]
    return top == _PACKAGE or top in PURE_MODULES or top.startswith(_PACKAGE + "_")


def _is_impure_module(home: str) -> bool:
    return home.partition(".")[0] in IMPURE_MODULES or home.startswith("numpy.random")


def home_of(function: Any) -> str:
    """Return the module of a function in C, or of the class that has it as a method."""
    if isinstance(function, _UNBOUND):
        return module_of(function.__objclass__)
    owner = getattr(function, "__self__", None)
    if isinstance(owner, ModuleType) or (owner is None and hasattr(function, "__module__")):
        return str(function.__module__ or getattr(owner, "__name__", ""))
    kind = owner if isinstance(owner, type) else type(owner)
    if module_of(kind).startswith(LIBRARY):
        return LIBRARY
    name = function.__name__
    for base in kind.__mro__:
        if not isinstance(vars(base).get(name), (FunctionType, type(None))):  # that calls this one
            return module_of(base)
    return module_of(kind)


def _name_of(frame: FrameType) -> str:
    return frame.f_globals.get("__name__") or ""
