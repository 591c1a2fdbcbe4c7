"""Effects: functions written in C that a program may not call, if its ops are to be all that it does.

Of such a function nothing is seen but the call. So programs may call those alone that are known to do nothing
besides returning a value, or changing what is compared anyhow (:mod:`.state`). What Python's own modules call
on their behalf is too much to be listed: there, those are refused that are known to do more.
"""

from __future__ import annotations

import builtins
import gc
import io
import sys
from collections.abc import Callable
from types import FrameType, FunctionType, ModuleType
from typing import Any

from .classes import LIBRARY, is_standard, module_of

__all__ = ["home_of", "is_asked_for", "is_impure"]

_PACKAGE = LIBRARY.rstrip(".")
#: What differs from call to call, or does something besides returning a value.
_IMPURE = frozenset({id(function) for function in (builtins.print, builtins.input, builtins.open)})
#: What tells of the interpreter: who calls, where an object lies, who else has it.
_INTERPRETER = frozenset(map(id, (
    builtins.__import__, builtins.globals, builtins.id, sys._getframe, sys.exc_info, sys.gettrace,
    sys.getprofile, sys.getrefcount, gc.get_referrers, gc.isenabled,
)))  # fmt: skip
_IMPURE_MODULES = (
    "time", "random", "_random", "secrets", "posix", "numpy.random", "datetime", "_warnings",
    "atexit", "_ctypes", "_locale", "_queue", "_signal", "_socket", "_sqlite3", "sqlite3", "select",
)  # fmt: skip
#: Modules whose functions, and methods of whose classes, do nothing besides.
_PURE_MODULES = frozenset((
    "_abc", "_bisect", "_blake2", "_codecs", "_collections", "_contextvars", "_csv", "_decimal",
    "_functools", "_hashlib", "_heapq", "_json", "_md5", "_operator", "_pickle", "_sha1", "_sha2",
    "_sha3", "_sre", "_statistics", "_string", "_struct", "_typing", "_weakref", "array", "binascii",
    "builtins", "cmath", "collections", "decimal", "functools", "itertools", "math", "numpy",
    "operator", "re", "types", "typing", "unicodedata", "weakref", "zlib", _PACKAGE,
))  # fmt: skip
#: And single ones of other modules.
_PURE = frozenset(map(id, (
    sys.getdefaultencoding, sys.getfilesystemencoding, sys.intern, sys.is_finalizing,
)))  # fmt: skip
_PURE_KINDS = (io.StringIO, io.BytesIO)
#: Contexts of decimal numbers hold settings, which are a thread's own.
_SETTINGS = frozenset(("getcontext", "setcontext", "localcontext"))


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
    if id(function) in _IMPURE:
        return True
    if id(function) in _INTERPRETER:  # Python's own modules do so for nothing that programs see
        if caller == "inspect" and function is not id:
            return is_asked_for(frame)
        return not is_standard(caller)
    home = home_of(function)
    if home.startswith(_IMPURE_MODULES):
        return True
    if is_standard(caller) or caller.startswith("numpy."):
        return False
    if home.partition(".")[0] in _PURE_MODULES or home.startswith(_PACKAGE + "_"):
        return home in ("_decimal", "decimal") and function.__name__ in _SETTINGS
    owner = getattr(function, "__self__", None)
    return not (id(function) in _PURE or isinstance(owner, _PURE_KINDS))


def home_of(function: Any) -> str:
    """Return the module of a function in C, or of the class that has it as a method."""
    owner = getattr(function, "__self__", None)
    if owner is None or isinstance(owner, ModuleType):
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
