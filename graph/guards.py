"""Guards: what of Python's state a captured program holds for, and what it must not do.

While a program runs for the first time, a profile function sees which Python functions it calls. What these
can look at is watched from then on: attributes of modules and other objects, closures, the globals that
their code names. If the program itself changes any of it, or calls what is different each time (a clock,
a random number of Python's, ``print``), then a graph of its ops does less than the program.
"""

from __future__ import annotations

import builtins
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
_OPAQUE = (TensorBase, type, ModuleType, BuiltinFunctionType, CodeType)
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
        if hasattr(value, "__array_interface__"):
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
        elif isinstance(value, FunctionType):
            self._known[id(value)] = value
        elif has_state(value):
            self._known[id(value)] = value
            state = vars(value)
            self._known[id(state)] = state
            if isinstance(state, dict):
                self._copies.append((state, state.copy(), type(value).__name__))
                for name, item in state.items():
                    self.add(item, f"{label}.{name}", depth + 1)

    def _function(self, frame: FrameType) -> None:
        """Watch what a function that is called can look at."""
        code = frame.f_code
        here = frame.f_locals
        name = frame.f_globals.get("__name__") or ""
        if name.partition(".")[0] in sys.stdlib_module_names and name != "__main__":
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
            return [partial(sys.setprofile, profile)], [partial(sys.setprofile, sys.getprofile())]

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
                if value != copy:
                    return label
            for cell, value, label in self._cells:
                found = cell.cell_contents
                if found is not value and (isinstance(value, TensorBase) or found != value):
                    return label
            for table, name, value in self._globals:
                found = table.get(name)
                if found is not value and (isinstance(value, TensorBase) or found != value):
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
