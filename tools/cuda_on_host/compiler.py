"""Compile CUDA sources for the host, in place of NVRTC."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
# As NVRTC by default, products and sums are contracted where the processor has such instructions.
_OPTIONS = (
    "-std=c++20", "-O1", "-fPIC", "-march=native", "-ffp-contract=fast", "-fno-strict-aliasing", "-w",
    "-fpermissive",
)  # fmt: skip
_KERNEL = re.compile(r"__global__\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?void\s+(\w+)\s*\(")
_DYNAMIC = re.compile(
    r"extern\s+__shared__\s+(?:__align__\s*\(\d+\)\s*)?([\w:<> ]+?)\s+(\w+)\s*\[\s*\]"
)
# The assembly in tensorplug's sources, and what it does.
_ASSEMBLY = (
    ('asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(x.bits));', "result = half_to_float(x.bits);"),
    (
        'asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(x));',
        "result.bits = float_to_half(x);",
    ),
)
_WAITS = re.compile(
    r"__sync|\bSYNC\b|__shfl|__ballot|__any_sync|__all_sync|over_block|_block_reduce|_REDUCE"
)


def _compiler() -> str:
    found = shutil.which("g++")
    if found is None:
        raise RuntimeError("there is no g++ to compile CUDA sources with")
    return found


def includes() -> list[str]:
    """Return the options that name the folders of CuPy's and of the toolkit's headers."""
    import cupy
    from cuda import pathfinder

    toolkit = pathfinder.find_nvidia_header_directory("cudart")
    own = Path(cupy.__file__).parent / "_core" / "include"
    libraries = [f"-isystem{own}/cupy/_cccl/{name}" for name in ("libcudacxx", "thrust")]
    return [f"-I{HERE}", f"-I{own}", *libraries, f"-isystem{toolkit}"]


@cache
def version() -> str:
    """Return what has to be told apart from kernels that were compiled differently."""
    parts = [
        (HERE / name).read_text("utf-8")
        for name in ("device.h", "driver.h", "export.h", "compiler.py")
    ]
    # The compiler's macros tell its version, and the instructions of this processor.
    command = [_compiler(), *_OPTIONS, "-E", "-dM", "-x", "c++", os.devnull]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return hashlib.sha256("".join([*parts, done.stdout]).encode()).hexdigest()[:16]


@cache
def _precompiled() -> Path:
    """Return a folder with `device.h` compiled, which takes longer than most kernels."""
    folder = Path(os.environ["HOSTED_FOLDER"]) / "headers" / version()
    done = folder / "device.h.gch"
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f"part-{os.getpid()}.gch"
        command = [
            _compiler(),
            *_OPTIONS,
            *includes(),
            "-x",
            "c++-header",
            str(HERE / "device.h"),
            "-o",
            str(part),
        ]
        subprocess.run(command, check=True)
        part.replace(done)
    return folder


def _kernels(source: str) -> list[str]:
    """Return the names of the kernels that a source holds, those that macros make among them."""
    text = re.sub(r"^\s*#\s*include.*$", "", source, flags=re.MULTILINE)
    command = [_compiler(), "-E", "-P", "-x", "c++", "-w", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return sorted(set(_KERNEL.findall(done.stdout)))


def compile_source(
    source: str, options: Sequence[str] = (), expressions: Sequence[str] | None = None
) -> tuple[bytes, dict[str, str] | None]:
    """Return a shared library with the kernels of a CUDA source, and the symbols of instances of templates.

    Raises
    ------
    RuntimeError
        Where it cannot be compiled; the text is the compiler's.
    """
    if expressions:
        symbols = {expression: f"instance_{i}" for i, expression in enumerate(sorted(expressions))}
    else:
        symbols = {name: name for name in _kernels(source)}
    for written, meant in _ASSEMBLY:
        source = source.replace(written, meant)
    waits = "true" if _WAITS.search(source) else "false"
    parts = [
        '#include "device.h"',
        _DYNAMIC.sub(r"HOSTED_DYNAMIC_SHARED(\1, \2)", source),
        (HERE / "export.h").read_text("utf-8"),
        *[f"HOSTED_EXPORT({symbol}, {waits}, {name})" for name, symbol in symbols.items()],
    ]
    given = [option for option in options if option.startswith(("-D", "-I"))]
    if "--fmad=false" in options:
        given.append("-ffp-contract=off")
    with tempfile.TemporaryDirectory() as folder:
        code, library = Path(folder) / "kernels.cpp", Path(folder) / "kernels.so"
        code.write_text("\n".join(parts), "utf-8")
        command = [
            _compiler(), *_OPTIONS, f"-I{_precompiled()}", *includes(), *given,
            "-shared", str(code), "-o", str(library),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{shlex.join(command)}\n{done.stderr}\n{code.read_text()}")
        return library.read_bytes(), symbols if expressions else None
