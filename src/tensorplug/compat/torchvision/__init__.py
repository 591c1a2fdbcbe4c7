"""The compiled ops of torchvision, in ops of tensorplug: ``torch.ops.torchvision.nms`` and its like.

torchvision's Python files are as they are in its wheel; they call their compiled library through
``torch.ops``. This package is an extension plugin, as a stranger would write it, that answers instead. It is
registered when a program loads that library, which torchvision does when it is imported.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tensorplug.core import plugins
from tensorplug.plugin import Kernel, Op, composite, hookimpl

from . import backward, boxes, deformable, images, pooling, rows

__all__ = ["load", "plugin"]

_FAMILIES: tuple[Any, ...] = (backward, boxes, deformable, pooling, rows)


@composite(name="torchvision._cuda_version", method=False, outputs="")
def _cuda_version() -> int:
    """Return -1: nothing here was compiled for a version of CUDA."""
    return -1


class TorchvisionPlugin:
    """Registers the ops of torchvision."""

    name = "torchvision"

    @hookimpl
    def tensorplug_ops(self) -> Iterable[Op]:
        """Return the ops."""
        ops: list[Any] = [
            _cuda_version,
            *[op for family in (*_FAMILIES, images) for op in family.OPS],
        ]
        return ops

    @hookimpl
    def tensorplug_kernels(self) -> Iterable[Kernel]:
        """Return the kernels that beat decompositions on "cpu"."""
        return rows.table

    @hookimpl
    def tensorplug_derivatives(self) -> Iterable[Any]:
        """Return the derivatives of what is not differentiated through its decomposition."""
        return [*boxes.DERIVATIVES, *rows.DERIVATIVES]


plugin = TorchvisionPlugin()


#: torchvision's libraries of ops, under the names that its versions have given them.
_LIBRARIES = re.compile(r"(_C|image)(_stable)?\.(so|pyd|dylib)$")


def load(path: str | Path) -> None:
    """Answer for a library of compiled ops, if it is one of torchvision's.

    Raises
    ------
    OSError
        If it is another library: it is compiled against torch itself.
    """
    path = Path(path)
    name = re.sub(r"\.(cpython|cp|abi)[^.]*", "", path.name)  # `_C.cpython-311-x86_64-linux-gnu.so`
    if path.parent.name != "torchvision" or not _LIBRARIES.match(name):
        raise OSError(
            f"{path}: tensorplug loads no libraries that are compiled against torch; their ops have to come "
            "from a plugin, as those of torchvision do"
        )
    if plugins.record_of(plugin.name) is None:
        plugins.register(plugin)
        importlib.import_module("tensorplug.library.registration").COMPLETE.update(
            {"torchvision", "image"}
        )
