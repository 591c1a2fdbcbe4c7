"""Caches: functions of ``lru_cache`` that a program asks with tensors, which are known by identity.

Asked with a tensor that the program made, a cache finds nothing, and nobody can ask for what it leaves
behind: a graph in which the function runs each time does the same, but for what ``cache_info()`` counts.
What it finds by an argument it may not find by another one.
"""

from __future__ import annotations

import gc
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import CodeType, FrameType
from typing import Any

from tensorplug.core import Tensor

from .capture import Recorder
from .nodes import tensors_in

__all__ = ["Caches"]


class Caches:
    """What is known of the cached functions that a program may call."""

    def __init__(self) -> None:
        # The cached functions and what they had counted; by the code of what they call, one of them, and how
        # often that surely found nothing since.
        self._known: dict[int, tuple[Any, Any]] = {}
        self._of_code: dict[CodeType | None, Any] = {}
        self._missed: dict[CodeType, int] = {}
        #: The tensors that they were asked with, by id.
        self.keys: dict[int, Any] = {}

    def add(self, function: Any) -> None:
        """Watch a cached function from now on."""
        self._known.setdefault(id(function), (function, function.cache_info()))
        self._of_code[getattr(function.__wrapped__, "__code__", None)] = function

    def note(self, frame: FrameType, recorder: Recorder) -> None:
        """Note that a function begins, which a cache may have called."""
        if frame.f_code not in self._of_code:
            return
        made = [value for value in _arguments(frame) if recorder.is_new(value)]
        if made:
            self._missed[frame.f_code] = self._missed.get(frame.f_code, 0) + 1
            self.keys.update({id(tensor): tensor for tensor in made})

    def left_out(self) -> set[int]:
        """Return the ids of the cached functions that were asked for nothing that they may know."""
        found = set()
        for code, missed in self._missed.items():
            function, before = self._known[id(self._of_code[code])]
            now = function.cache_info()
            if now.hits == before.hits and now.misses - before.misses == missed:
                found.add(id(function))
        return found

    def find_by(self, tensors: dict[int, Any]) -> bool:
        """Return whether a cache found anything that it may keep by a tensor which is none of some."""
        for function, before in self._known.values():
            if function.cache_info().hits > before.hits:
                tables = [table for table in gc.get_referents(function) if type(table) is dict]
                keys = [key for table in tables for key in table]
                if any([id(tensor) not in tensors for tensor in tensors_in(keys)]):
                    return True
        return False


def _arguments(frame: FrameType) -> list[Any]:
    """Return the tensors among the arguments of a function that begins."""
    code = frame.f_code
    named = code.co_argcount + code.co_kwonlyargcount
    rest = bool(code.co_flags & CO_VARARGS) + bool(code.co_flags & CO_VARKEYWORDS)
    values: list[Any] = []
    for number, name in enumerate(code.co_varnames[: named + rest]):
        value = frame.f_locals.get(name)
        if number < named:
            values.append(value)
        elif isinstance(value, dict):
            values += value.values()
        elif isinstance(value, tuple):
            values += value
    return [value for value in values if type(value) is Tensor]
