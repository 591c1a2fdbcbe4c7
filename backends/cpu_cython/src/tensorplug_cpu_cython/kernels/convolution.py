"""Convolutions, by oneDNN where it is installed, some by kernels of our own."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import DType, KernelTable, dtype_named

from .. import convolution_depthwise
from ..below import below
from ..halves import HALVES, in_single
from ..library import onednn

_CONVOLUTIONS = ("convolution", "convolution_input", "convolution_weight")


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    single = [dtype_named("float32")]
    own: list[DType] = []  # the halves that oneDNN computes itself: which, the processor says
    if onednn is None:
        kernels = {name: _by_channel(name) for name in _CONVOLUTIONS}
    else:
        from .. import convolution

        kernels = {name: getattr(convolution, name) for name in _CONVOLUTIONS}
        own = [dtype_named("bfloat16")] if onednn.has_bf16 else own
        for name in _CONVOLUTIONS:
            onednn.fallbacks[name] = below(name)
            for half in own:
                table.add(name, getattr(onednn, name), dtypes=[half])
    for name, kernel in kernels.items():
        table.add(name, kernel, dtypes=single)
        for half in HALVES:
            if half not in own:
                table.add(name, in_single(kernel), dtypes=[half])


def _by_channel(name: str) -> Any:
    """Return a kernel that convolves each channel by itself, and leaves all else to the one below."""
    compiled, lower = getattr(convolution_depthwise, name), below(name)

    def convolve(*arguments: Any) -> Any:
        found = compiled(*arguments)
        return lower(*arguments) if found is None else found

    return convolve
