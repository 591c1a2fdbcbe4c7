"""CuPy, imported when a function of it is first used: importing it takes most of a second."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Mapping
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


def toolkit_library(name: str, signatures: Mapping[str, tuple[Any, ...]], prefix: str = "") -> Any:
    """Return one of the toolkit's libraries, as CuPy finds it, with functions declared that return an int."""
    pathfinder: Any = importlib.import_module("cuda.pathfinder")
    loaded = ctypes.CDLL(pathfinder.load_nvidia_dynamic_lib(name).abs_path)
    for function, arguments in signatures.items():
        declared = getattr(loaded, prefix + function)
        declared.argtypes = arguments
        declared.restype = ctypes.c_int
    return loaded


def address(array: Any) -> int:
    """Return where an array's first element is on its device."""
    return array.data.ptr
