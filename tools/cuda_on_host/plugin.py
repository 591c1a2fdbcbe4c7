"""Lets the CuPy that is imported next find a device; a plugin of pytest, or to be imported first."""

from __future__ import annotations

import ctypes
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from pathlib import Path
from types import SimpleNamespace

_RUNTIME = "cupy_backends.cuda.api.runtime"


class _Finder(importlib.abc.MetaPathFinder):
    """Finds CuPy's module of the CUDA runtime where it is built upon the driver of the host."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def find_spec(self, name, path=None, target=None):
        if name != _RUNTIME:
            return None
        loader = importlib.machinery.ExtensionFileLoader(name, str(self._path))
        return importlib.util.spec_from_loader(name, loader)


def activate(folder: Path) -> None:
    """Load what was built into a folder in the place of NVIDIA's libraries."""
    os.environ["HOSTED_FOLDER"] = str(folder)
    os.environ["CUPY_ACCELERATORS"] = ""
    os.environ["CUPY_CACHE_DIR"] = str(folder / "kernels")
    for name in ("libcuda.so.1", "libcublas.so.13", "libcublasLt.so.13", "libcufft.so.12"):
        if (folder / name).exists():
            ctypes.CDLL(str(folder / name), ctypes.RTLD_GLOBAL)
    sys.meta_path.insert(0, _Finder(folder / "runtime.so"))

    from cuda import pathfinder

    find = pathfinder.load_nvidia_dynamic_lib

    def load(name):
        files = {
            "cublas": "libcublas.so.13",
            "cufft": "libcufft.so.12",
            "cublasLt": "libcublasLt.so.13",
        }
        if name not in files:
            return find(name)
        path = str(folder / files[name])
        return SimpleNamespace(abs_path=path, _handle_uint=ctypes.CDLL(path)._handle)

    pathfinder.load_nvidia_dynamic_lib = load

    from cupy.cuda import compiler

    from .compiler import compile_source, version

    def compile_on_host(source, options, arch, filename, name_expressions, *rest):
        try:
            return compile_source(source, options, name_expressions)
        except RuntimeError as error:
            raise compiler.CompileException(str(error), source, filename, options, "g++") from None

    import cupy
    from cupy._core import _routines_sorting
    from cupy._sorting import sort

    from . import thrust

    for module in (_routines_sorting, sort, cupy.cuda):
        module.thrust = thrust
    if os.environ.get("HOSTED_GUARD"):
        cupy.cuda.set_allocator(None)  # a pool would hand out parts of larger blocks
    compiler._compile_using_nvrtc_no_warning = compile_on_host
    compiler._preprocess = lambda *rest: version()


activate(Path(os.environ["HOSTED_FOLDER"]))
