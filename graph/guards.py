"""Guards: what of Python's state a captured program holds for, and what it must not do.

While a program runs for the first time, a profile function sees which Python functions it calls. What these
can look at is watched from then on: attributes of modules and other objects, closures, the globals that
their code names. If the program itself changes any of it, or calls what is different each time (a clock,
a random number of Python's, ``print``), then a graph of its ops does less than the program.
"""

from __future__ import annotations

import builtins
import gc
import sys
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

from tensorplug.core.contexts import Block, Steps
from tensorplug.core.tensor.base import TensorBase
from tensorplug.nn import Module

__all__ = ["Watch"]

_LIBRARY = __name__.partition(".")[0] + "."
_CONTAINERS = (dict, list, set, OrderedDict)
_OPAQUE = (TensorBase, ModuleType, BuiltinFunctionType, CodeType)
#: What differs from call to call, or does something besides returning a value.
_IMPURE = frozenset({id(function) for function in (builtins.print, builtins.input, builtins.open)})
_IMPURE_MODULES = ("time", "random", "_random", "secrets", "posix", "numpy.random", "datetime")
_DEPTH = 6


class Watch:
    """State that a program depends on, as it was.

    Attributes
    ----------
    effects : list of str
        What the program did that a graph does not.
    """

    def __init__(self) -> None:
        self._cells: list[tuple[Any, Any, str]] = []
        self.effects: list[str] = []
        self._copies: list[tuple[Any, Any, str]] = []
        self._globals: list[tuple[dict[str, Any], str, Any]] = []
        self._known: dict[int, Any] = {}
        self._seen: set[CodeType] = set()

    # --- what is watched ---

    def add(self, value: Any, label: str, depth: int = 0) -> None:
        """Watch an object and what it holds."""
        if depth > _DEPTH or id(value) in self._known or isinstance(value, _OPAQUE):
            return
        if hasattr(value, "__array_interface__") and not isinstance(value, type):
            self.effects.append(f"looks at an array of the host, {label}")
            return
        if isinstance(value, _CONTAINERS):
            self._known[id(value)] = value
            self._copies.append((value, value.copy(), label))
            for key, item in value.items() if isinstance(value, dict) else enumerate(value):
                self.add(item, f"{label}[{key!r}]", depth + 1)
        elif isinstance(value, tuple):
            for number, item in enumerate(value):
                self.add(item, f"{label}[{number}]", depth + 1)
        elif isinstance(value, MethodType):
            self.add(value.__self__, label, depth + 1)
        elif isinstance(value, type):
            if not _is_foreign(value.__module__):
                self._attributes(value, value.__name__, depth)
                for base in value.__mro__[1:]:
                    self.add(base, base.__name__, depth)
        elif isinstance(value, FunctionType):
            if not _is_foreign(value.__module__ or ""):
                self._attributes(value, value.__name__, depth)
                self.closure(value)
        elif has_state(value):
            self._attributes(value, label, depth)
            self.add(type(value), type(value).__name__, depth)

    def _attributes(self, value: Any, label: str, depth: int) -> None:
        self._known[id(value)] = value
        state = vars(value)
        self._known[id(state)] = state
        self._copies.append((state, dict(state), label))
        for name, item in list(state.items()):
            if name not in _OF_CLASSES:
                self.add(item, f"{label}.{name}", depth + 1)

    def _function(self, frame: FrameType) -> None:
        """Watch what a function that is called can look at."""
        code = frame.f_code
        here = frame.f_locals
        name = frame.f_globals.get("__name__") or ""
        if _is_standard(name):
            if name == "os" and _asked_for(frame):
                self.effects.append(f"calls os.{code.co_name}()")
            return
        library = name.startswith(_LIBRARY)
        if "self" in here and (isinstance(here["self"], Module) or not library):
            self.add(here["self"], "self")
        if code in self._seen or library:
            return
        self._seen.add(code)
        for free in code.co_freevars:
            if free in here:
                self.add(here[free], free)
        for used in code.co_names:
            if used in frame.f_globals:
                value = frame.f_globals[used]
                self._globals.append((frame.f_globals, used, value))
                self.add(value, used)
                if isinstance(value, ModuleType) and not value.__name__.startswith(_LIBRARY[:-1]):
                    table = vars(value)
                    self._globals += [(table, n, table[n]) for n in code.co_names if n in table]

    def closure(self, function: Any) -> None:
        """Watch the closure of a function, whose cells may be set anew."""
        cells = getattr(function, "__closure__", None) or ()
        names = getattr(getattr(function, "__code__", None), "co_freevars", ())
        for name, cell in zip(names, cells, strict=False):
            try:
                value = cell.cell_contents
            except ValueError:  # empty
                continue
            self._cells.append((cell, value, name))
            self.add(value, name)

    # --- during the first run ---

    def watching(self, in_op: Callable[[], bool]) -> Block:
        """See which functions are called within a ``with`` block, but not those that ops call."""

        def profile(frame: FrameType, event: str, arg: Any) -> None:
            if in_op():
                return
            if event == "call":
                self._function(frame)
            elif event == "c_call":
                name = frame.f_globals.get("__name__") or ""
                if not name.startswith(_LIBRARY) and _impure(arg):
                    self.effects.append(f"calls {getattr(arg, '__qualname__', arg)}()")

        def steps() -> tuple[Steps, Steps]:
            # The collector calls functions of others, which are none of the program's.
            collect = [gc.enable] if gc.isenabled() else []
            return (
                [gc.disable, partial(sys.setprofile, profile)],
                [partial(sys.setprofile, sys.getprofile()), *collect],
            )

        return Block(steps)

    def settle(self) -> None:
        """After the first run: note what it changed."""
        changed = self.changed()
        if changed:
            self.effects.append(f"changes {changed}")

    # --- before each other run ---

    def changed(self) -> str:
        """Return what is not as it was; "" if all is."""
        try:
            for value, copy, label in self._copies:
                if value != copy or _types(value) != _types(copy):
                    return label
            for cell, value, label in self._cells:
                if _differs(cell.cell_contents, value):
                    return label
            for table, name, value in self._globals:
                if _differs(table.get(name), value):
                    return name
        except (
            Exception
        ) as error:  # what is compared may be of any class; tensors have no truth value
            return f"what cannot be compared: {error}"
        return ""


def has_state(value: Any) -> bool:
    """Return whether a program may look at attributes of an object: a module, or of a class of its own."""
    if isinstance(value, Module):
        return True
    module = type(value).__module__
    return hasattr(value, "__dict__") and not module.startswith((_LIBRARY, *_STANDARD))


def _differs(found: Any, value: Any) -> bool:
    """Return whether a name stands for something else; 1, 1.0 and True make other results."""
    if found is value:
        return False
    return isinstance(value, TensorBase) or type(found) is not type(value) or found != value


def _types(container: Any) -> list[type]:
    if isinstance(container, set):
        return []
    return [*map(type, container if isinstance(container, list) else container.values())]


def _is_standard(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names and module != "__main__"


def _is_foreign(module: str) -> bool:
    """Return whether a module is of this library or of Python's, whose functions and classes stay."""
    return module.startswith(_LIBRARY) or _is_standard(module)


def _asked_for(frame: FrameType | None) -> bool:
    """Return whether a function of Python's library runs for the program, not for this library."""
    while frame is not None and _is_standard(frame.f_globals.get("__name__") or ""):
        frame = frame.f_back
    return frame is not None and not (frame.f_globals.get("__name__") or "").startswith(_LIBRARY)


#: Of every class: nothing that programs look at.
_OF_CLASSES = frozenset(("__dict__", "__doc__", "__module__", "__weakref__", "__annotations__"))
_STANDARD = ("builtins", "typing", "functools", "weakref", "_thread", "threading")


def _impure(function: Callable[..., Any]) -> bool:
    if id(function) in _IMPURE:
        return True
    owner = getattr(function, "__self__", None)
    module = getattr(function, "__module__", None) or (
        owner.__name__ if isinstance(owner, ModuleType) else type(owner).__module__
    )
    return str(module).startswith(_IMPURE_MODULES) or type(owner).__module__.startswith(
        _IMPURE_MODULES
    )
