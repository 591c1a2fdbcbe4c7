"""Saving and loading, in files that torch reads and writes too, without running their code."""

from __future__ import annotations

from .archive import FileFormatError
from .loading import get_unsafe_globals_in_checkpoint, load
from .saving import save
from .settings import (
    LoadEndianness,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
)
from .unpickling import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals

__all__ = [
    "FileFormatError",
    "LoadEndianness",
    "add_safe_globals",
    "clear_safe_globals",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
]
