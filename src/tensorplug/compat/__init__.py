"""Programs written for torch, run unchanged: their ``import torch`` resolves to tensorplug.

On the command line::

    python -m tensorplug.compat program.py [arguments]
    python -m tensorplug.compat -m package.module [arguments]

In a program of one's own::

    with tensorplug.compat.install():
        import some_package_that_imports_torch

This is for trying things out, and for packages that one cannot change. A program of one's own reads
better with its import changed. docs/compat.md says how it works and what it has run.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tensorplug.core.device.dtypes import show_names_as

from . import spawning
from .finder import FINDER, alias_of, is_ours

__all__ = ["install", "run", "torch", "uninstall"]

#: The namespace ``torch`` as programs see it, without installing anything.
torch: Any


class _Installation:
    """Uninstalls at the end of a ``with`` block."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        uninstall()


def install() -> _Installation:
    """Let ``import torch``, and imports from it, resolve to tensorplug from now on.

    Processes that :mod:`multiprocessing` starts meanwhile do so, too, however they are started.

    Returns
    -------
    context manager
        Calls :func:`uninstall` at the end of a ``with`` block.

    Raises
    ------
    RuntimeError
        If torch itself has been imported: what has its names already would keep them.

    Examples
    --------
    >>> with install():  # doctest: +SKIP
    ...     from torch import nn
    ...
    ...     nn.Linear(2, 1)
    Linear(in_features=2, out_features=1, bias=True)
    """
    if "torch" in sys.modules and not is_ours(sys.modules["torch"]):
        raise RuntimeError(
            "compat.install(): torch itself is already imported in this process, so some names are "
            "bound to it; call install() before anything imports torch"
        )
    if FINDER not in sys.meta_path:
        sys.meta_path.insert(0, FINDER)
        spawning.tell_children(install)
        show_names_as("torch")
    return _Installation()


def uninstall() -> None:
    """Let ``import torch`` mean torch again; what was imported already keeps its names."""
    if FINDER in sys.meta_path:
        sys.meta_path.remove(FINDER)
        spawning.tell_children(None)
        show_names_as("tensorplug")
    for name in [name for name, module in sys.modules.items() if is_ours(module)]:
        del sys.modules[name]


def run(program: str, arguments: Sequence[str] = (), *, module: bool = False) -> dict[str, Any]:
    """Run a program as the main one, with its ``import torch`` resolving to tensorplug.

    Parameters
    ----------
    program : str
        A file; or a module's name, with `module`.
    arguments : sequence of str
        Its arguments, as ``sys.argv`` will show them.
    module : bool
        Whether `program` names a module, as after ``python -m``.

    Returns
    -------
    dict
        The program's global names.

    Raises
    ------
    RuntimeError
        If torch itself has been imported.
    """
    sys.argv = [program, *arguments]
    with install():
        if module:
            return runpy.run_module(program, run_name="__main__", alter_sys=True)
        sys.path[0] = str(Path(program).resolve().parent)  # as Python does for a script
        return runpy.run_path(program, run_name="__main__")


def __getattr__(name: str) -> Any:
    if name == "torch":
        return alias_of("torch")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
