"""Finds oneDNN, which is optional: without it convolutions and matrix products are left to NumPy."""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import ModuleType
from typing import Any

DISTRIBUTION = "onednn-cpu-gomp"
LIBRARY = "libdnnl.so.3"
INSTALL = f"pip install {DISTRIBUTION}==2023.2.0"


def _located() -> Path | None:
    """Return where the distribution has put the library."""
    from importlib import metadata

    try:
        files = metadata.files(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return None
    found = [Path(str(file.locate())) for file in files if file.name == LIBRARY]
    return next((path for path in found if path.exists()), None)


def _load() -> Any:
    """Return the module of oneDNN's kernels, or None, which is said once."""
    try:
        return _module()
    except ImportError as error:
        path = _located()
        reason: Exception = error
    if path is not None:
        try:
            # The loader takes a library that is there already for one of the same name.
            ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)
            return _module()
        except (ImportError, OSError) as error:
            reason = error
    import logging  # takes its time, and is rarely needed

    logging.getLogger("tensorplug.cpu_cython").warning(
        "oneDNN is not in use (%s); convolutions and matrix products are slower. `%s` brings it.",
        reason,
        INSTALL,
    )
    return None


def _module() -> ModuleType:
    from . import onednn as module

    return module


onednn = _load()
