"""What a pickle names, found without making any of it, and what to say where that is refused."""

from __future__ import annotations

import _compat_pickle
import io
import pickle
import sys
from collections.abc import Callable
from typing import Any, ClassVar

from . import torch_names

#: Modules whose functions run programs, or code: no message says how to let a file name them alone.
_DANGEROUS = frozenset(
    {
        "_pickle", "builtins", "code", "codeop", "copyreg", "ctypes", "dill", "cloudpickle", "importlib",
        "marshal", "nt", "os", "pickle", "posix", "pty", "runpy", "shutil", "socket", "subprocess", "sys",
        "webbrowser",
    }
)  # fmt: skip


class _Nothing:
    """Stands for whatever a pickle names or makes."""


NOTHING = _Nothing()


def modern(module: str, name: str) -> tuple[str, str]:
    """Return a name as Python has it now: protocol 2 still writes what Python 2 had."""
    module, name = _compat_pickle.NAME_MAPPING.get((module, name), (module, name))
    return _compat_pickle.IMPORT_MAPPING.get(module, module), name


def _dropping(code: bytes, several: bool, leaves: bool) -> Callable[[Any], None]:
    """Return an operation that takes its operands from the stack, and may leave a stand-in."""

    def operation(self: Any) -> None:
        if several:
            self.pop_mark()
        else:
            del self.stack[-(2 if code == pickle.SETITEM else 1) :]
        if leaves:
            self.append(NOTHING)

    return operation


class Scanner(pickle._Unpickler):
    """Reads a pickle for the names in it and the memories that it refers to; nothing is made or called.

    Parameters
    ----------
    data : bytes-like or binary file
        The pickle.
    find : callable, optional
        Called with what a reference to a memory says.
    known : callable, optional
        Given module and name, what such a reference may hold.
    """

    stack: list[Any]
    dispatch: ClassVar[dict[int, Any]] = dict(pickle._Unpickler.dispatch)

    def __init__(
        self,
        data: Any,
        find: Callable[[Any], Any] = lambda reference: NOTHING,
        known: Callable[[str, str], Any] = lambda module, name: NOTHING,
    ) -> None:
        super().__init__(data if hasattr(data, "read") else io.BytesIO(data), encoding="utf-8")
        self.names: dict[tuple[str, str], None] = {}
        self._find = find
        self._known = known

    def find_class(self, module: str, name: str) -> Any:
        """Note a name."""
        self.names[module, name] = None
        return self._known(module, name)

    def persistent_load(self, pid: Any) -> Any:
        """Tell of a reference to a memory."""
        return self._find(pid)

    def _instantiate(self, cls: Any, arguments: Any) -> None:
        self.append(NOTHING)  # type: ignore[attr-defined]

    def _call(self) -> None:
        self.stack.pop()
        self.stack[-1] = NOTHING

    def _by_keywords(self) -> None:
        self.stack.pop()
        self._call()

    def _bytearray(self) -> None:
        size = int.from_bytes(self.read(8), "little")  # type: ignore[attr-defined]
        if len(self.read(size)) < size:  # type: ignore[attr-defined]
            raise EOFError("a bytearray ends early")
        self.append(NOTHING)  # type: ignore[attr-defined]

    def _extension(self) -> None:
        raise pickle.UnpicklingError("extension codes")

    for _code in (pickle.REDUCE, pickle.NEWOBJ):
        dispatch[_code[0]] = _call
    dispatch[pickle.NEWOBJ_EX[0]] = _by_keywords
    dispatch[pickle.BYTEARRAY8[0]] = _bytearray
    for _code in (pickle.BUILD, pickle.APPEND, pickle.SETITEM):
        dispatch[_code[0]] = _dropping(_code, False, False)
    for _code in (pickle.APPENDS, pickle.SETITEMS, pickle.ADDITEMS):
        dispatch[_code[0]] = _dropping(_code, True, False)
    for _code in (pickle.DICT, pickle.FROZENSET, pickle.LIST):
        dispatch[_code[0]] = _dropping(_code, True, True)
    for _code in (pickle.EXT1, pickle.EXT2, pickle.EXT4):
        dispatch[_code[0]] = _extension


def _spelled(module: str, name: str) -> tuple[str, str] | None:
    """Return the module to import for a name in a file, and how to pass the thing on."""
    place, own = modern(module, name)
    if place.partition(".")[0] == "torch":
        thing = torch_names.find(place, own)
        if thing is None:
            return None
        place, own = thing.__module__, thing.__qualname__
        same = torch_names.name_of(thing) == (module, name)
    else:
        thing = sys.modules.get(place)
        for part in own.split("."):
            thing = getattr(thing, part, None)
        known = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
        same = known == (module, name)
    text = f"{place}.{own}"
    return place, text if same else f'({text}, "{module}.{name}")'


def advice(names: list[tuple[str, str]], others: list[tuple[str, str]] | None, source: str) -> str:
    """Return lines of Python, each of which lets a file be read.

    Parameters
    ----------
    names : list of (module, name)
        What the file names and may not.
    others : list of (module, name), optional
        What of it may not be named with ``weights_only=False`` either; None if that was given.
    source : str
        How the file is written in Python.
    """
    lines = []
    if others is not None and not others:
        lines.append(f"import tensorplug as tp; tp.load({source}, weights_only=False)")
    needed = names if others is None else [*names]
    if not any([modern(*name)[0].partition(".")[0] in _DANGEROUS for name in needed]):
        spelled = [_spelled(*name) for name in needed]
        if None not in spelled:
            modules = ", ".join(sorted({part[0] for part in spelled if part is not None}))
            things = ", ".join([part[1] for part in spelled if part is not None])
            option = "" if others is not None else ", weights_only=False"
            lines.append(
                f"import {modules}, tensorplug as tp; tp.serialization.add_safe_globals([{things}]); "
                f"tp.load({source}{option})"
            )
    lines.append(
        f"import pickle, tensorplug as tp; tp.load({source}, weights_only=False, pickle_module=pickle)"
    )
    return "\n    ".join(lines)
