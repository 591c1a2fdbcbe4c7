"""How this tensorplug was built and what it uses: the first lines of a bug report."""

from __future__ import annotations

import os
import platform
from importlib import metadata

from tensorplug.core import plugins

from ._settings import compiled, get_num_threads

__all__ = ["parallel_info", "show", "show_config"]

_PACKAGES = ("numpy", "scipy", "ml-dtypes", "pluggy")
_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def show() -> str:
    """Return versions, the installed plugins and how many threads kernels use, as text.

    No plugin is loaded for it. ``tensorplug doctor`` loads them all, and tells what is wrong.
    """
    lines = [
        f"tensorplug {metadata.version('tensorplug')}, hot path {'' if compiled() else 'not '}compiled",
        f"Python {platform.python_version()}, {platform.platform()}",
        ", ".join(f"{name} {metadata.version(name)}" for name in _PACKAGES),
        "plugins:",
    ]
    in_use = set(plugins.runtimes())
    for found in sorted(plugins.installed(), key=lambda found: found.label):
        state = ", loaded" if found.device in in_use else ""
        lines.append(f"  {found.name} of {found.package} {found.version}{state}")
    return "\n".join([*lines, parallel_info()])


def parallel_info() -> str:
    """Return how many threads kernels use, and what was said about it, as text."""
    said = [f"{name}={os.environ[name]}" for name in _VARIABLES if name in os.environ]
    prefixed = [
        f"{name}={value}" for name, value in os.environ.items() if name[:11] == "TENSORPLUG_"
    ]
    return f"threads: {get_num_threads()} of {os.cpu_count()} CPUs" + "".join(
        f", {entry}" for entry in (*said, *sorted(prefixed))
    )


def show_config() -> None:
    """Print versions, the installed plugins and how many threads kernels use: for a bug report.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.show_config()
    tensorplug ...
    """
    print(show())  # noqa: T201  what it is for
