"""Convolutions, by oneDNN where it is installed, some by kernels of our own."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import KernelTable, dtype_named

from .. import convolution_depthwise
from ..below import below
from ..library import onednn

_CONVOLUTIONS = ("convolution", "convolution_input", "convolution_weight")


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    single = [dtype_named("float32")]
    half = [dtype_named("bfloat16")]
    if onednn is None:
        for name in _CONVOLUTIONS:
            table.add(name, _by_channel(name), dtypes=single)
        return
    from .. import convolution

    for name in _CONVOLUTIONS:
        onednn.fallbacks[name] = below(name)
        table.add(name, getattr(convolution, name), dtypes=single)
        if onednn.has_bf16:
            table.add(name, getattr(onednn, name), dtypes=half)


def _by_channel(name: str) -> Any:
    """Return a kernel that convolves each channel by itself, and leaves all else to the one below."""
    compiled, lower = getattr(convolution_depthwise, name), below(name)

    def convolve(*arguments: Any) -> Any:
        found = compiled(*arguments)
        return lower(*arguments) if found is None else found

    return convolve
