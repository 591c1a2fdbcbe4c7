"""Which kernels take floats of eight bits: those that move elements, and few that look at them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tensorplug.plugin import FLOAT8, Kernel

_OPS = frozenset(
    {
        # views
        "as_strided", "basic_index", "diagonal", "expand", "permute", "reshape", "unfold", "view",
        "view_dtype",
        # copies
        "cast", "cat", "clone", "copy", "fill_new", "index", "index_put", "index_select",
        "masked_select", "place", "stack", "where",
        # what they hold
        "abs", "eq", "ne",
    }
)  # fmt: skip


def kernels(settled: Iterable[Kernel]) -> list[Kernel]:
    """Return kernels for floats of eight bits: of those that take any dtype, the ones that move elements."""
    return [
        replace(kernel, dtypes=frozenset(FLOAT8))
        for kernel in settled
        if kernel.op in _OPS and kernel.dtypes is None
    ]
