"""Guards: which state of Python's a captured program holds for, and what it must not do.

While a program runs for the first time, a profile function sees which Python functions it calls. What these
can look at is kept (:mod:`.state`). If the program itself changes any of it, or calls what is different each
time (a clock, a random number of Python's, ``print``), then a graph of its ops does less than the program.
"""

from __future__ import annotations

import builtins
import dis
import gc
import os
import sys
import weakref
from contextvars import copy_context
from functools import partial
from types import CodeType, FrameType, ModuleType
from typing import Any

from tensorplug.core.contexts import Block, Steps
from tensorplug.core.device.runtime import DeviceRuntime
from tensorplug.nn import Module
from tensorplug.nn.hooks import global_hooks

from .capture import Recorder
from .classes import LIBRARY, has_state, is_standard
from .comparing import MISSING, alike
from .contents import of_context
from .effects import (
    does_more_when_called,
    home_of,
    is_asked_for,
    is_handed_on_with_more,
    is_impure,
)
from .lookups import handed_on, matches_classes, names_in, reads_all
from .memory import line_in
from .slots import Attribute, attributes_set
from .state import State

__all__ = ["Watch", "has_state"]


#: Functions of :mod:`os` that read the environment.
_OF_ENVIRONMENT = frozenset(
    ("__getitem__", "__iter__", "__len__", "__repr__", "copy", "getenv", "encode", "decode")
)
#: Functions of :mod:`threading` that tell who calls, and beside whom.
_OF_THREADS = frozenset(("active_count", "current_thread", "enumerate", "main_thread"))
#: Functions of Python's that return what other programs may change.
_LOOKUPS = frozenset((("importlib", "import_module"), ("logging", "getLogger")))
#: What makes the objects that :mod:`copy` fills.
_COPYING = ("copyreg", "__newobj__")


class Watch(State):
    """State that a program depends on, found while it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.add(vars(global_hooks), "the hooks of all modules")
        self._seen: set[CodeType] = set()
        # The program itself, and its line by the first effect.
        self.root: CodeType | None = None
        self.line = 0
        self._context = copy_context()
        # Modules that import what is asked for, and code that may have asked.
        self._lazy: list[tuple[ModuleType, CodeType]] = []
        #: The ids of modules of which methods were called.
        self.called: set[int] = set()
        #: Attributes of state that the program set to other tensors, if that is all that it did.
        self.attributes: list[Attribute] = []

    # --- during the first run ---

    def _function(self, frame: FrameType) -> None:
        """Keep what a function that is called can look at."""
        code = frame.f_code
        here = frame.f_locals
        name = frame.f_globals.get("__name__") or ""
        library = name.startswith(LIBRARY)
        if not library:
            self.reads_all = self.reads_all or reads_all(code)
            self.matches = self.matches or matches_classes(code)
        if is_standard(name):
            self.read.update(code.co_names)
            finalizer = name == "weakref" and isinstance(here.get("self"), weakref.finalize)
            if name == "os" and code.co_name in _OF_ENVIRONMENT:
                self.add(os.environ, "the environment")  # which only other functions change
                return
            of_thread = name == "threading" and code.co_name in _OF_THREADS
            if (name == "os" or finalizer or of_thread) and is_asked_for(frame):
                self._effect(f"calls {name}.{'finalize' if finalizer else code.co_name}()")
            return
        if name.startswith("numpy."):  # its arrays are noted where they are looked at
            self.settings(of_context, of_context(self._context))
            return
        if "self" in here:
            self._object(here["self"], code.co_name == "__init__", library)
        if library:
            return
        for free in code.co_freevars:
            if free in here and not _is_local(frame, free):
                self.add(here[free], free)
                if isinstance(here[free], ModuleType):
                    self._module(here[free], code)
        if code in self._seen:
            return
        self._seen.add(code)
        self.used.update(names_in(code))
        self.handed_on.update(handed_on(code))
        of_globals = {
            step.argval
            for step in dis.get_instructions(code)
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")
        }
        for used in code.co_names:  # attributes, too
            if used in of_globals and (used in frame.f_globals or used in _BUILTINS):
                value = self.name(frame.f_globals, used)
                self.add(value, used)
                if isinstance(value, ModuleType):
                    self._module(value, code)
                elif value is not MISSING:
                    self._named_call(value, used, code)
                elif used in _BUILTINS:
                    self._named_call(self.name(_BUILTINS, used), used, code)
            elif used in sys.modules:  # imported within the function
                self._module(sys.modules[used], code)
        for variable, value in here.items():
            if isinstance(value, ModuleType):
                self._module(value, code)
            else:
                self._named_call(value, variable, code)

    def _named_call(self, value: Any, name: str, code: CodeType) -> None:
        """Refuse a function in C that may do more, where nobody is told that it is called."""
        passed = name in handed_on(code)
        if (passed and is_handed_on_with_more(value)) or (
            not passed and does_more_when_called(value)
        ):
            self._effect(
                f"{'hands on' if passed else 'calls'} {getattr(value, '__qualname__', name)}"
            )

    def _object(self, value: Any, is_new: bool, library: bool) -> None:
        """Keep the object of which a method is called, but not one that the program made."""
        if id(value) in self._known or id(value) in self.own or id(value) in self.given:
            if isinstance(value, Module):
                self.called.add(id(value))
            return
        if not library and hasattr(type(value), "__del__"):  # kept, it would not go when it goes
            self._effect(f"makes an object of class {type(value).__name__}, which has a finalizer")
        elif is_new:
            self._made(value)
        elif isinstance(value, Module) or not library:
            self.add(value, "self", called=True)

    def _made(self, value: Any) -> None:
        """Know an object as one that the program made."""
        key = id(value)
        try:
            self.own[key] = weakref.ref(value, partial(self._gone, key))
        except TypeError:  # its class has none
            self.own[key] = value

    def _copied(self, value: Any) -> None:
        """Know an object as one that the program made by copying; one that a class hands out may be older."""
        kind: Any = type(value)
        if kind.__new__ is not object.__new__:
            return
        if hasattr(kind, "__del__"):
            self._effect(f"makes an object of class {kind.__name__}, which has a finalizer")
        else:
            self._made(value)

    def _gone(self, key: int, reference: Any) -> None:
        self.own.pop(key, None)

    def _is_others_finalizer(self, frame: FrameType) -> bool:
        """Return whether a finalizer is called, of an object that the program cannot have made."""
        if frame.f_code.co_name != "__del__":
            return False
        kind = type(frame.f_locals.get("self"))
        if id(kind) in self._known:
            self._effect(f"lets go of an object of class {kind.__name__}, which has a finalizer")
            return False
        return True

    def _module(self, module: ModuleType, code: CodeType, *above: ModuleType) -> None:
        """Keep the names of a module that a function uses, and of modules in it."""
        table = vars(module)
        for used in code.co_names:
            if used in table:
                value = self.name(table, used)
                if isinstance(value, ModuleType):
                    if value is not module and value not in above:
                        self._module(value, code, *above, module)
                else:
                    self.add(value, used)
                    self._named_call(value, f".{used}", code)
            elif "__getattr__" in table:
                self._lazy.append((module, code))  # which may have it once it was asked for

    def _effect(self, what: str) -> None:
        self.effects.append(what)
        self.line = self.line or line_in(self.root)

    def source(self) -> str:
        """Return the line of the first effect, ``file:line``; "" if that is not known."""
        return f"{self.root.co_filename}:{self.line}" if self.root and self.line else ""

    def watching(self, recorder: Recorder) -> Block:
        """See which functions are called within a ``with`` block, but not those that ops or devices call.

        The recorder is told of the profile function that sees them.
        """
        in_op = recorder.is_busy
        # What runs and is none of the program's: a method of a device's runtime, an import, a finalizer.
        other: FrameType | None = None

        def profile(frame: FrameType, event: str, arg: Any) -> None:
            nonlocal other
            if other is not None:
                if event == "return" and frame is other:
                    other = None
                return
            if in_op():
                return
            if event == "call":
                is_runtime = isinstance(frame.f_locals.get("self"), DeviceRuntime)
                if is_runtime or _imports(frame) or self._is_others_finalizer(frame):
                    other = frame
                    return
                self.caches.note(frame, recorder)
                self._function(frame)
            elif event == "return":
                name = frame.f_globals.get("__name__"), frame.f_code.co_name
                if name in _LOOKUPS and is_asked_for(frame):
                    self.add(arg, name[1])
                elif name == _COPYING:
                    self._copied(arg)
            elif event == "c_call" and is_impure(arg, frame):
                self._effect(f"calls {getattr(arg, '__qualname__', arg)}()")
            elif event == "c_call" and home_of(arg) == "_pickle":
                self.reads_all = True

        def steps() -> tuple[Steps, Steps]:
            # The collector calls functions of others, which are none of the program's.
            collect = [gc.enable] if gc.isenabled() else []
            tell = partial(setattr, recorder, "profile")
            return (
                [gc.disable, partial(tell, profile), partial(sys.setprofile, profile)],
                [partial(sys.setprofile, sys.getprofile()), partial(tell, None), *collect],
            )

        return Block(steps)

    def by_lines(self, found: Watch) -> Block:
        """Find the line that changes what this watch saw of an earlier call, of the program or one around it.

        Within a ``with`` block; `found`, the watch of this call, is told. A debugger stays undisturbed.
        """
        if sys.gettrace() is not None:
            return Block(lambda: ([], []))
        now = Watch()
        for value in list(self._known.values()):
            now.add(value, "state")
        for table, name, _ in self._names:
            now.name(table, name)
        last, left = 0, _MOST_LINES

        def line(frame: FrameType, event: str, arg: Any) -> Any:
            nonlocal last, left
            if last and not found.line and now.changed():
                found.line = last
            last, left = frame.f_lineno, left - 1
            return None if found.line or not left else line

        def call(frame: FrameType, event: str, arg: Any) -> Any:
            return line if frame.f_code is found.root and not found.line else None

        return Block(lambda: ([partial(sys.settrace, call)], [partial(sys.settrace, None)]))

    def modules(self) -> list[Module]:
        """Return the modules that the program reaches."""
        return [value for value in self._known.values() if isinstance(value, Module)]

    def settle(self) -> None:
        """After the first run: note what it changed, and what it looked at that cannot be compared."""
        lazy, self._lazy = self._lazy, []
        for module, code in dict.fromkeys(lazy):
            self._module(module, code)
        super().settle()
        self.own.clear()
        self.given.clear()
        if not alike(of_context(), of_context(self._context)):
            self.effects.append("changes a context variable")
        if self.caches.find_by(self.tensors):
            self.effects.append("asks a cache by a tensor that it is given or makes")
        left_out = self.caches.left_out()
        self._records = [record for record in self._records if id(record[0]) not in left_out]
        changed = self.changed()
        if changed:
            self.attributes = self._attributes_set() if not self.effects else []
            self.effects.append(f"changes {changed}")

    def _attributes_set(self) -> list[Attribute]:
        """Return the attributes that the program set to other tensors, if it changed nothing else."""
        found = attributes_set(self._containers, self._tables)
        return [] if self.changed() else found


_BUILTINS = vars(builtins)
#: After how many lines nothing more is looked for.
_MOST_LINES = 1000


def _is_local(frame: FrameType, name: str) -> bool:
    """Return whether a free variable is one of a function that is running, of the program or around it."""
    outer = frame.f_back
    while outer is not None and not (outer.f_globals.get("__name__") or "").startswith(__name__):
        if name in outer.f_code.co_cellvars:
            return True
        outer = outer.f_back
    return False


def _imports(frame: FrameType) -> bool:
    """Return whether a function finds and runs a module, or a plugin, which later calls do not do again."""
    module = frame.f_globals.get("__name__")
    return module == f"{LIBRARY}core.plugins.discovery" or (
        module == "importlib._bootstrap" and frame.f_code.co_name == "_find_and_load"
    )
