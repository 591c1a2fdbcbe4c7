"""Build what lets CuPy run on the host: a driver, libraries, and CuPy's module of the runtime upon them.

    python -m cuda_on_host.build FOLDER

CuPy's wheel has NVIDIA's runtime within this one module, which only NVIDIA's driver can serve; so it is built
again from CuPy's sources, of the version that is installed. Everything else is CuPy's wheel as it is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
from cuda import pathfinder

HERE = Path(__file__).parent
_FLAGS = ("-shared", "-fPIC", "-O2", "-w")
_DIRECTIVES = {"binding": False, "c_api_binop_methods": True, "freethreading_compatible": True}


def _compile(output: Path, sources: list[Path], *options: str) -> None:
    subprocess.run(["g++", *_FLAGS, *options, *map(str, sources), "-o", str(output)], check=True)


def _sources_of_cupy(folder: Path) -> Path:
    """Return CuPy's sources, of the version that is installed."""
    wanted = version("cupy-cuda13x")
    found = folder / f"cupy-{wanted}"
    if not found.exists():
        # Without this variable, CuPy's build looks for a whole toolkit before it tells its dependencies.
        command = [
            sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps",
            "--no-binary", "cupy", f"cupy=={wanted}", "--dest", str(folder),
        ]  # fmt: skip
        subprocess.run(command, env={**os.environ, "READTHEDOCS": "True"}, check=True)
        with tarfile.open(found.with_suffix(found.suffix + ".tar.gz")) as archive:
            archive.extractall(folder, filter="data")
    return found


def _runtime(folder: Path, toolkit: str) -> None:
    """Build ``cupy_backends.cuda.api.runtime`` upon our driver."""
    import Cython
    from Cython.Build import cythonize
    from setuptools import Extension

    name = "cupy_backends.cuda.api.runtime"
    before = Path.cwd()
    os.chdir(_sources_of_cupy(folder))
    try:
        constants = {
            "CUPY_USE_CUDA_PYTHON": False,
            "CUPY_CUFFT_STATIC": False,
            "CUPY_CYTHON_VERSION": Cython.__version__,
            "CUPY_CUDA_VERSION": 13000,
            "CUPY_HIP_VERSION": 0,
        }
        source = name.replace(".", "/")
        cythonize(
            [Extension(name, [f"{source}.pyx"], language="c++")], language_level=3, quiet=True,
            compiler_directives=_DIRECTIVES, compile_time_env=constants,
        )  # fmt: skip
        _compile(
            folder / "runtime.so", [Path(f"{source}.cpp").absolute()], "-std=c++17",
            '-DCYTHON_EXTERN_C=extern "C"', "-DNPY_TARGET_VERSION=NPY_2_0_API_VERSION", f"-I{HERE}/include",
            f"-I{sysconfig.get_paths()['include']}", f"-I{toolkit}", f"-I{np.get_include()}",
        )  # fmt: skip
    finally:
        os.chdir(before)


def _library(folder: Path, source: str, soname: str) -> None:
    """Build a library under the name, and the version of its symbols, that CuPy's modules ask for."""
    script = folder / f"{soname}.map"
    script.write_text(f"{soname} {{ global: *; }};\n", "utf-8")
    options = ("-std=c++20", "-O3", f"-Wl,-soname,{soname}", f"-Wl,--version-script={script}")
    _compile(folder / soname, [HERE / source], *options)


def build(folder: Path) -> None:
    """Build all into a folder, where nothing has to be there."""
    folder.mkdir(parents=True, exist_ok=True)
    toolkit = pathfinder.find_nvidia_header_directory("cudart")
    _compile(
        folder / "libcuda.so.1", [HERE / "driver.cpp", HERE / "missing.cpp"], "-std=c++20", f"-I{toolkit}",
        "-Wl,-soname,libcuda.so.1", "-pthread", "-ldl",
    )  # fmt: skip
    _library(folder, "cublas.cpp", "libcublas.so.13")
    _library(folder, "cublaslt.cpp", "libcublasLt.so.13")
    _library(folder, "cufft.cpp", "libcufft.so.12")
    _library(folder, "thrust.cpp", "libthrust.so")
    if not (folder / "runtime.so").exists():
        _runtime(folder, toolkit)


if __name__ == "__main__":
    build(Path(sys.argv[1]).absolute())
