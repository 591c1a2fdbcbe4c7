"""Convolutions and linear layers by oneDNN, where it is installed."""

from __future__ import annotations

from functools import cache
from typing import Any

from tensorplug.plugin import DType, KernelTable, dtype_named, kernel_below

from .._dtypes import NATIVES
from ..library import onednn

_CONVOLUTIONS = ("convolution", "convolution_input", "convolution_weight")


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    if onednn is None:
        return
    dtypes = [dtype_named("float32")]
    from .. import attention, products

    table.add("linear", products.linear, dtypes=dtypes)
    table.add("linear", onednn.half_linear, dtypes=[dtype_named("bfloat16")])
    if onednn.has_bf16:
        dtypes.append(dtype_named("bfloat16"))
    for name in _CONVOLUTIONS:
        onednn.fallbacks[name] = _below(name)
        table.add(name, getattr(onednn, name), dtypes=dtypes)
    for name in ("attention", "attention_gradient"):
        table.add(name, getattr(attention, name), dtypes=[dtype_named("float32")])


def _below(name: str) -> Any:
    """Return what finds, by NumPy's dtype, the kernel for the calls that oneDNN does not serve."""
    dtypes: dict[Any, DType] = {native: dtype for dtype, native in NATIVES.items()}

    @cache
    def find(native: Any) -> Any:
        return kernel_below(name, "cpu", dtypes[native], "cpu_cython_networks")

    return find
