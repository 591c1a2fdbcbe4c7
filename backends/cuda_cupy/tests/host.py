"""Compiles the CUDA sources as C++ for the host, and calls their kernels on NumPy arrays."""

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


def compiler():
    found = shutil.which("g++")
    if found is None:
        pytest.skip("no g++ to compile the CUDA sources with")
    return found


@functools.cache
def library(source, dtype, macros):
    code = sources.text(source, dtype, **dict(macros))
    names = re.findall(r"__global__ void (\w+)\(", code)
    exports = "\n".join(f"EXPORT({name})" for name in names)
    folder = Path(tempfile.mkdtemp(dir=_FOLDER.name))
    (folder / "kernels.cpp").write_text(f'#include "host_shim.h"\n{code}\n{exports}\n', "utf-8")
    command = [
        compiler(), "-std=c++20", "-O1", "-shared", "-fPIC", "-pthread", "-ffp-contract=off",
        f"-I{HERE}", str(folder / "kernels.cpp"), "-o", str(folder / "kernels.so"),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(folder / "kernels.so"))


def launch(source, name, dtype, blocks, arguments, **macros):
    """Stand in for ``sources.launch``: arrays go as their address, NumPy scalars as they are."""
    kernel = getattr(library(source, dtype, tuple(sorted(macros.items()))), f"host_{name}")
    values = []
    for argument in arguments:
        if argument is None:
            argument = np.uint64(0)
        elif isinstance(argument, np.ndarray) and argument.dtype.names is None:
            assert argument.flags.c_contiguous
            argument = np.uint64(argument.ctypes.data)
        values.append(np.array(argument))
    pointers = (ctypes.c_void_p * len(values))(*[value.ctypes.data for value in values])
    kernel(ctypes.c_uint(min(blocks, 3)), ctypes.c_uint(THREADS), pointers)
