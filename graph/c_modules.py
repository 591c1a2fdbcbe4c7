"""What the modules of Python and NumPy that are written in C do: each of them stands in one of these tables.

`tests/graph/test_c_functions.py` goes through all callables of all of those modules, and calls those that are
said to be pure.
"""

from __future__ import annotations

import _random
import _thread
import builtins
import gc
import io
import sys
import weakref
from collections.abc import Callable, Iterable
from typing import Any

__all__ = [
    "EFFECTS", "IMPURE_CLASSES", "IMPURE_METHODS", "IMPURE_MODULES", "INTERNAL_MODULES", "INTERPRETER",
    "OF_PURE_CLASSES", "PURE", "PURE_KINDS", "PURE_MODULES", "SYSTEM",
]  # fmt: skip


def _ids(functions: Iterable[Any]) -> frozenset[int]:
    return frozenset(map(id, functions))


def _some(module: Any, *names: str) -> list[Callable[..., Any]]:
    """Return those functions of a module that this version of Python has."""
    return [getattr(module, name) for name in names if hasattr(module, name)]


#: Functions that do something besides returning a value, or wait for somebody.
EFFECTS = _ids((builtins.print, builtins.input, builtins.open, builtins.breakpoint))
#: What tells of the interpreter: who calls, where an object lies, who else has it.
INTERPRETER = _ids((
    builtins.__import__, builtins.globals, builtins.hash, builtins.id, sys._getframe, sys.exc_info,
    sys.gettrace, sys.getprofile, sys.getrefcount, gc.get_referrers, gc.isenabled,
    weakref.getweakrefcount, weakref.getweakrefs,
))  # fmt: skip
#: Modules whose functions do something besides, or differ from call to call: whoever calls them.
IMPURE_MODULES = frozenset((
    "time", "random", "_random", "secrets", "posix", "datetime", "_datetime", "_warnings", "atexit",
    "_ctypes", "_locale", "_queue", "_signal", "_socket", "_sqlite3", "sqlite3", "select", "_asyncio",
    "_curses", "_curses_panel", "_dbm", "_gdbm", "_interpchannels", "_interpqueues", "_interpreters",
    "_lsprof", "_multiprocessing", "_overlapped", "_posixshmem", "_posixsubprocess", "_remote_debugging",
    "_scproxy", "_ssl", "_tkinter", "_uuid", "_winapi", "_wmi", "_xxsubinterpreters",
    "_xxinterpchannels", "faulthandler", "fcntl", "grp", "mmap", "msvcrt", "nis", "nt", "ossaudiodev",
    "pwd", "readline", "resource", "spwd", "syslog", "termios", "winreg", "winsound",
))  # fmt: skip
#: Modules whose functions, and methods of whose classes, do nothing besides.
PURE_MODULES = frozenset((
    "_abc", "_bisect", "_blake2", "_bz2", "_codecs", "_codecs_cn", "_codecs_hk", "_codecs_iso2022",
    "_codecs_jp", "_codecs_kr", "_codecs_tw", "_collections", "_contextvars", "_csv", "_decimal",
    "_functools", "_hashlib", "_heapq", "_hmac", "_json", "_lzma", "_md5", "_multibytecodec",
    "_operator", "_pickle", "_sha1", "_sha2", "_sha256", "_sha3", "_sha512", "_sre", "_stat",
    "_statistics", "_string", "_struct", "_types", "_typing", "_weakref", "_zstd", "array", "audioop",
    "binascii", "builtins", "cmath", "collections", "decimal", "errno", "functools", "itertools", "math",
    "numpy", "operator", "re", "types", "typing", "unicodedata", "weakref", "zlib",
))  # fmt: skip
#: Those that Python's own modules call for what programs do not see, such as locks; programs may not.
INTERNAL_MODULES = frozenset((
    "_ast", "_crypt", "_elementtree", "_imp", "_io", "_opcode", "_suggestions", "_symtable",
    "_sysconfig", "_thread", "_tokenize", "_tracemalloc", "_zoneinfo", "gc", "marshal", "pyexpat", "sys",
))  # fmt: skip
#: Functions of pure modules, and methods by their names, that read or change what is none of a program's.
IMPURE_METHODS = frozenset((
    ("_codecs", "register"), ("_codecs", "register_error"), ("_codecs", "unregister"),
    ("_csv", "field_size_limit"), ("_csv", "get_dialect"), ("_csv", "list_dialects"),
    ("_csv", "register_dialect"), ("_csv", "unregister_dialect"),
    ("array", "buffer_info"), ("builtins", "__sizeof__"), ("builtins", "__subclasses__"),
    ("functools", "cache_info"), ("numpy", "fromfile"), ("numpy", "tofile"),
    # Contexts of decimal numbers hold settings, which are a thread's own.
    *[
        (module, name)
        for module in ("_decimal", "decimal")
        for name in ("getcontext", "localcontext", "setcontext")
    ],
))  # fmt: skip
#: Functions that change what others see, for whomever Python's own modules call them.
SYSTEM = _ids((
    *_some(
        sys, "displayhook", "excepthook", "unraisablehook", "exit", "breakpointhook", "addaudithook",
        "activate_stack_trampoline", "deactivate_stack_trampoline",
        *[name for name in dir(sys) if name.startswith("set")],
    ),
    *_some(_thread, "start_new_thread", "start_new", "start_joinable_thread", "interrupt_main"),
    *_some(gc, "collect", "freeze", "unfreeze", "set_debug", "set_threshold", "get_count", "get_stats"),
))  # fmt: skip
#: Functions of internal modules that programs may call, and classes whose methods they may.
PURE = _ids((sys.getdefaultencoding, sys.getfilesystemencoding, sys.intern, sys.is_finalizing))
PURE_KINDS = (io.StringIO, io.BytesIO)
#: Modules, beside the pure ones, of classes whose objects are made without doing or reading anything.
OF_PURE_CLASSES = frozenset((
    "_ast", "ast", "_ctypes", "_datetime", "datetime", "_elementtree", "_io", "_queue", "_thread",
    "_zoneinfo", "zoneinfo", "pyexpat",
))  # fmt: skip
#: Classes of which that is not so: making one opens, or draws, something.
IMPURE_CLASSES: tuple[type, ...] = (io.FileIO, _random.Random)
