"""Compiles the CUDA sources as C++ for the host, and calls their kernels on NumPy arrays."""

import atexit
import ctypes
import functools
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

from tensorplug_cuda_cupy import sources

HERE = Path(__file__).parent
THREADS = 16  # of each block; a power of two, as on the device
_FOLDER = tempfile.TemporaryDirectory(prefix="tensorplug-cuda-")
atexit.register(_FOLDER.cleanup)


def compiler():
    found = shutil.which("g++")
    if found is None:
        pytest.skip("no g++ to compile the CUDA sources with")
    return found


_FLOATS = [(dtype, ()) for dtype in ("float32", "float64", "float16", "bfloat16")]
_WIDTHS = [(dtype, (("WIDE", wide),)) for dtype, _ in _FLOATS for wide in (0, 1)]
VARIANTS = {
    "pooling": _WIDTHS,
    "batchnorm": [
        (dtype, (("NARROW", narrow), *macros))
        for dtype, macros in _WIDTHS
        for narrow in ((0, 1) if dtype in ("float16", "bfloat16") else (0,))
    ],
    "rows": [(name, ()) for name in ("uint8", "uint16", "uint32", "uint64")],
    "philox": [("", ())],
    "accumulate": [
        (dtype, (("PARTS", parts), ("WAY", way)))
        for dtype in sources.TYPES
        for way, parts in ((0, 1), (1, 1), (2, 1), (3, 1), (0, 2))
        if parts == 1 or dtype in ("float32", "float64")
    ],
}
# Whose kernels do not loop over what is left: each block has its part.
_STRIDED = ("cells",)  # is told how far rows lie apart
_EXACT = ("adafactor", "amp", "batchnorm", "optimizers", "rownorm")


@functools.cache
def library(source):
    """Compile all variants of a source at once, each in a namespace: the headers take most of the time."""
    code = (sources.FOLDER / f"{source}.cu").read_text("utf-8").replace('extern "C"', "")
    names = [name for name in re.findall(r"__global__ void (\w+)\(", code) if name != "name"]
    names += re.findall(r"^(?:ACTIVATION|GRADIENT)\((\w+), ", code, re.MULTILINE)
    parts = ['#include "host_shim.h"']
    headers = ("prelude", "reduce")
    parts += [(sources.FOLDER / f"{name}.cuh").read_text("utf-8") for name in headers]
    for number, (dtype, macros) in enumerate(VARIANTS.get(source, _FLOATS)):
        for macro, value in macros:
            parts.append(f"#undef {macro}\n#define {macro} {value}")
        element, computed = sources.TYPES.get(dtype, ("int", "int"))
        own = [
            (sources.FOLDER / f"{name}.cuh").read_text("utf-8")
            for name in sources.HEADERS.get(source, ())
        ]
        guards = re.findall(
            r"#ifndef (TENSORPLUG_\w+|LANES)|#define (\w+)", "\n".join([*own, code])
        )
        parts += [f"#undef {name}" for pair in guards for name in pair if name]
        joined = "\n".join([*own, code])
        parts.append(
            f"namespace v{number} {{ typedef {element} T; typedef {computed} A;\n{joined}\n}}"
        )
        parts += [f"EXPORT(v{number}, {name})" for name in names]
    folder = Path(tempfile.mkdtemp(dir=_FOLDER.name))
    (folder / "kernels.cpp").write_text("\n".join(parts), "utf-8")
    command = [
        compiler(), "-std=c++20", "-O1", "-shared", "-fPIC", "-pthread", "-ffp-contract=off",
        f"-I{HERE}", str(folder / "kernels.cpp"), "-o", str(folder / "kernels.so"),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(folder / "kernels.so"))


def without_gaps(array):
    """Return whether elements fill their memory, in whichever order of the dimensions."""
    order = sorted(range(array.ndim), key=lambda d: (-array.strides[d], array.shape[d]))
    return array.transpose(order).flags.c_contiguous


def launch(source, name, dtype, blocks, arguments, **macros):
    """Stand in for ``sources.launch``: arrays go as their address, NumPy scalars as they are."""
    number = VARIANTS.get(source, _FLOATS).index((dtype, tuple(sorted(macros.items()))))
    kernel = getattr(library(source), f"host_v{number}_{name}")
    if source not in _EXACT:
        blocks = min(blocks, 3)
    values = []
    for argument in arguments:
        if argument is None:
            argument = np.uint64(0)
        elif isinstance(argument, np.ndarray) and argument.dtype.names is None:
            assert source in _STRIDED or without_gaps(argument)
            argument = np.uint64(argument.ctypes.data)
        values.append(np.array(argument))
    pointers = (ctypes.c_void_p * len(values))(*[value.ctypes.data for value in values])
    kernel(ctypes.c_uint(blocks), ctypes.c_uint(THREADS), pointers)


_ELEMENTWISE = {
    "float": ("float_remainder", "float_floor_divide", "log_of_sum"),
    "double": ("float_remainder", "float_floor_divide", "log_of_sum"),
    **dict.fromkeys(
        ("unsigned char", "signed char", "short", "int", "long long"),
        ("whole_fmod", "shifted_left", "shifted_right"),
    ),
}


@functools.cache
def _elementwise_library():
    parts = ['#include "host_shim.h"', (sources.FOLDER / "elementwise.cuh").read_text("utf-8")]
    for element, names in _ELEMENTWISE.items():
        for name in names:
            symbol = f"{name}_{element.replace(' ', '_')}"
            parts.append(
                f'extern "C" void {symbol}(const {element}* a, const {element}* b, {element}* out, long n) '
                f"{{ for (long i = 0; i < n; ++i) out[i] = {name}(a[i], b[i]); }}"
            )
    folder = Path(tempfile.mkdtemp(dir=_FOLDER.name))
    (folder / "functions.cpp").write_text("\n".join(parts), "utf-8")
    command = [
        compiler(), "-std=c++20", "-O1", "-shared", "-fPIC", f"-I{HERE}",
        str(folder / "functions.cpp"), "-o", str(folder / "functions.so"),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(folder / "functions.so"))


def elementwise(function, a, b):
    """Call a function of elementwise.cuh on two arrays of one shape, element by element."""
    element = sources.TYPES[a.dtype.name][0].replace(" ", "_")
    out = np.empty_like(a)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (a, b, out)]
    getattr(_elementwise_library(), f"{function}_{element}")(*pointers, ctypes.c_long(a.size))
    return out
