"""The compiled ops of torchvision, in ops of tensorplug: ``torch.ops.torchvision.nms`` and its like.

torchvision's Python files are as they are in its wheel; they call their compiled library through
``torch.ops``. This package is an extension plugin, as a stranger would write it, that answers instead. It is
registered when a program loads that library, which torchvision does when it is imported.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorplug.plugin import Kernel, Op, composite, hookimpl

from . import backward, boxes, deformable, images, pooling, rows

__all__ = ["plugin"]

_FAMILIES: tuple[Any, ...] = (backward, boxes, deformable, pooling, rows)


@composite(name="torchvision._cuda_version", method=False, outputs="")
def _cuda_version() -> int:
    """Return -1: nothing here was compiled for a version of CUDA."""
    return -1


class TorchvisionPlugin:
    """Registers the ops of torchvision."""

    name = "torchvision"
    #: The namespaces of ``torch.ops`` that it fills, and what its versions have called the libraries of ops.
    namespaces = ("torchvision", "image")
    libraries = r"(_C|image)(_stable)?\.(so|pyd|dylib)$"

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
