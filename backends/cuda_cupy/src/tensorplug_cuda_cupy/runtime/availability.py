"""Why no CUDA device can be used, and what to do about it."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import sys
from typing import Any

from tensorplug.plugin import install_command

#: NVIDIA's driver, as the system's loader knows it.
DRIVER = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"


def install_line() -> str:
    """Return the command that brings CuPy."""
    return f"{install_command('tensorplug-cuda-cupy[cuda13]')} (or [cuda12], as your driver is)"


def missing_package() -> str | None:
    """Return that CuPy is not installed, or None."""
    if importlib.util.find_spec("cupy") is None:
        return f"the package CuPy is not installed; {install_line()}"
    return None


def missing_driver() -> str | None:
    """Return that there is no NVIDIA driver, or None."""
    try:
        ctypes.CDLL(DRIVER)
    except OSError:
        return (
            f"no NVIDIA driver was found ({DRIVER} cannot be loaded); install the driver of your GPU, and "
            "in a container start it with access to the GPU (--gpus all)"
        )
    return None


def unusable() -> str | None:
    """Return why no device can be used, or None: package, driver, device, compiler, in this order."""
    return missing_package() or missing_driver() or _broken_package() or _no_device() or _no_nvrtc()


def _broken_package() -> str | None:
    try:
        importlib.import_module("cupy")
    except Exception as error:
        return f"CuPy cannot be imported ({_first_line(error)}); {install_line()}"
    return None


def _no_device() -> str | None:
    runtime = importlib.import_module("cupy.cuda").runtime

    try:
        count = runtime.getDeviceCount()
    except Exception as error:
        if "InsufficientDriver" in str(error):
            return (
                f"the NVIDIA driver is too old for this build of CuPy, CUDA {_version(runtime)}: update "
                f"the driver, or {install_command('tensorplug-cuda-cupy[cuda12]')}"
            )
        return f"the CUDA driver finds no device ({_first_line(error)})"
    return None if count else "the CUDA driver finds no device; see CUDA_VISIBLE_DEVICES"


def _no_nvrtc() -> str | None:
    try:
        importlib.import_module("cupy.cuda").nvrtc.getVersion()
    except Exception as error:
        return f"the CUDA compiler NVRTC cannot be loaded ({_first_line(error)}); {install_line()}"
    return None


def _version(runtime: Any) -> str:
    number = runtime.runtimeGetVersion()
    return f"{number // 1000}.{number % 1000 // 10}"


def _first_line(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip(" =")]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
