"""Convolutions and linear layers, by oneDNN where it is installed, some by kernels of our own."""

from __future__ import annotations

from functools import cache
from typing import Any

from tensorplug.plugin import DType, KernelTable, dtype_named, kernel_below

from .. import depthwise
from .._dtypes import NATIVES
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
    from .. import attention, convolutions, products

    table.add("linear", products.linear, dtypes=single)
    table.add("linear", products.half_linear, dtypes=half)
    for name in _CONVOLUTIONS:
        onednn.fallbacks[name] = _below(name)
        table.add(name, getattr(convolutions, name), dtypes=single)
        if onednn.has_bf16:
            table.add(name, getattr(onednn, name), dtypes=half)
    for name in ("attention", "attention_gradient"):
        table.add(name, getattr(attention, name), dtypes=single)


def _below(name: str) -> Any:
    """Return what finds, by NumPy's dtype, the kernel for the calls that oneDNN does not serve."""
    dtypes: dict[Any, DType] = {native: dtype for dtype, native in NATIVES.items()}

    @cache
    def find(native: Any) -> Any:
        return kernel_below(name, "cpu", dtypes[native], "cpu_cython_networks")

    return find


def _by_channel(name: str) -> Any:
    """Return a kernel that convolves each channel by itself, and leaves all else to the one below."""
    compiled, below = getattr(depthwise, name), _below(name)

    def convolve(*arguments: Any) -> Any:
        found = compiled(*arguments)
        return below(arguments[0].dtype)(*arguments) if found is None else found

    return convolve
