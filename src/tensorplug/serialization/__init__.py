"""Saving and loading, in files that torch reads and writes too, without running their code."""

from __future__ import annotations

from .archive import FileFormatError
from .loading import get_unsafe_globals_in_checkpoint, load
from .saving import save
from .unpickling import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals

__all__ = [
    "FileFormatError",
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "safe_globals",
    "save",
]
