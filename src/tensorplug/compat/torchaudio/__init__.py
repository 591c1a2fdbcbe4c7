"""The compiled ops of torchaudio, in ops of tensorplug: ``torch.ops.torchaudio.forced_align`` and its like.

torchaudio's Python files are as they are in its wheel. This package is an extension plugin that answers for
the compiled library that they load, as the one for torchvision does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorplug.plugin import Kernel, Op, composite, hookimpl

from . import alignment, filters, transducer

__all__ = ["plugin"]


@composite(name="_torchaudio.is_align_available", method=False, outputs="")
def is_align_available() -> bool:
    """Return True: ``forced_align`` is there."""
    return True


@composite(name="_torchaudio.cuda_version", method=False, outputs="")
def cuda_version() -> None:
    """Return None: nothing here was compiled for a version of CUDA."""
    return


class TorchaudioPlugin:
    """Registers the ops of torchaudio."""

    name = "torchaudio"
    #: The namespaces of ``torch.ops`` that it fills, and what the libraries of ops are called.
    namespaces = ("torchaudio", "_torchaudio")
    libraries = r"lib/(_torchaudio|libtorchaudio)\.(so|pyd|dylib)$"

    @hookimpl
    def tensorplug_ops(self) -> Iterable[Op]:
        """Return the ops."""
        ops: list[Any] = [
            is_align_available,
            cuda_version,
            *filters.OPS,
            *alignment.OPS,
            *transducer.OPS,
        ]
        return ops

    @hookimpl
    def tensorplug_kernels(self) -> Iterable[Kernel]:
        """Return the kernel of recursive filters on "cpu"."""
        return filters.table


plugin = TorchaudioPlugin()
