"""The CUDA C++ sources, compiled at their first use for the types they are asked for.

NVRTC compiles them; CuPy keeps the result on disk (``CUPY_CACHE_DIR``, by default ``~/.cupy``), and loads it
into each device that a kernel is launched on.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .._cupy import cp

FOLDER = Path(__file__).parent
OPTIONS = ("--std=c++17",)
#: What each source includes beside the prelude and the reductions.
HEADERS: Mapping[str, tuple[str, ...]] = {
    "activation": ("activations",),
    "amp": ("batches",),
    "dropout": ("philox",),
    "optimizers": ("batches",),
    "random": ("philox",),
}
THREADS = 256  # of each block; the sources know it, too
_MOST_BLOCKS = 1 << 16
_GRID = 2**31 - 1  # the most that CUDA takes

#: How the sources call the types of elements, and the type they compute in.
TYPES: Mapping[str, tuple[str, str]] = {
    "bool": ("bool", "bool"),
    "uint8": ("unsigned char", "unsigned char"),
    "int8": ("signed char", "signed char"),
    "int16": ("short", "short"),
    "uint16": ("unsigned short", "unsigned short"),
    "int32": ("int", "int"),
    "uint32": ("unsigned int", "unsigned int"),
    "int64": ("long long", "long long"),
    "uint64": ("unsigned long long", "unsigned long long"),
    "float16": ("Half", "float"),
    "bfloat16": ("BFloat16", "float"),
    "float32": ("float", "float"),
    "float64": ("double", "double"),
}


def text(name: str, dtype: str = "", **macros: int) -> str:
    """Return a source as it is compiled.

    Parameters
    ----------
    name : str
        The file, without ending.
    dtype : str
        The name of the elements' type; empty for a source without one.
    **macros : int
        Further macros of the source.
    """
    lines = [f"#define {macro} {value}" for macro, value in macros.items()]
    headers = ("prelude", "reduce", *HEADERS.get(name, ()))
    parts = [*[_file(f"{header}.cuh") for header in headers], _file(f"{name}.cu")]
    if dtype:
        element, computed = TYPES[dtype]
        parts.insert(1, f"typedef {element} T;\ntypedef {computed} A;\n")
    return "\n".join([*lines, *parts])


@cache
def _file(name: str) -> str:
    return (FOLDER / name).read_text("utf-8")


@cache
def _module(name: str, dtype: str, macros: tuple[tuple[str, int], ...]) -> Any:
    return cp.RawModule(code=text(name, dtype, **dict(macros)), options=OPTIONS)


@cache
def function(
    source: str, name: str, dtype: str = "", macros: tuple[tuple[str, int], ...] = ()
) -> Any:
    """Return a kernel of a source, to be called as ``kernel((blocks,), (threads,), arguments)``."""
    return _module(source, dtype, macros).get_function(name)


def by_value(struct: Any) -> Any:
    """Return a NumPy array of one structure as a kernel's argument.

    CuPy asks each argument for NumPy's interface, which spells fields out each time; bytes have none.
    """
    return struct.view(np.dtype((np.void, struct.itemsize)))


def blocks_for(threads: int) -> int:
    """Return how many blocks give each of so many elements a thread; kernels loop over what is left."""
    return max(1, min(-(-threads // THREADS), _MOST_BLOCKS))


def launch(
    source: str,
    name: str,
    dtype: str,
    blocks: int,
    arguments: tuple[Any, ...],
    **macros: int,
) -> None:
    """Queue a kernel on the current stream.

    Parameters
    ----------
    source, name : str
        The file and the kernel.
    dtype : str
        The name of the elements' type, see :data:`TYPES`.
    blocks : int
        How many; see :func:`blocks_for`.
    arguments : tuple
        Arrays; NumPy scalars for numbers, whose types have to be the kernel's.
    **macros : int
        Further macros of the source.
    """
    kernel = function(source, name, dtype, tuple(sorted(macros.items())))
    kernel((max(1, min(blocks, _GRID)),), (THREADS,), arguments)
