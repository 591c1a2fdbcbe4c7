"""CuPy, imported when a function of it is first used: importing it takes most of a second."""

from __future__ import annotations

import importlib
from typing import Any


class LazyModule:
    """A module that is imported at its first use."""

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module(self._name), name)
        self.__dict__[name] = value  # so that the next use is an ordinary attribute
        return value


# CuPy's own annotations cover a part of it, so it counts as untyped, installed or not.
cp: Any = LazyModule("cupy")


def address(array: Any) -> int:
    """Return where an array's first element is on its device."""
    return array.data.ptr
