"""Kernels that rearrange elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorplug.core.tensor.layout import preserved_strides
from tensorplug.core.tensor.shapes import Shape

from ..tables import KernelTable
from .namespace import ArrayNamespace


def flipped(input: Any, dims: Shape, copied: Callable[[Any], Any]) -> Any:
    """Return an array reversed along `dims`, in its own order of memory; `copied` copies row by row."""
    key = tuple([slice(None, None, -1 if d in dims else None) for d in range(input.ndim)])
    return copied_like(input, input[key], copied)


def copied_like(input: Any, shown: Any, copied: Callable[[Any], Any]) -> Any:
    """Return a copy of an array of the shape of `input`, in the order of memory of that."""
    if input.flags.c_contiguous:
        return copied(shown)
    steps = preserved_strides(
        input.shape, tuple([step // input.itemsize for step in input.strides])
    )
    order = sorted(range(input.ndim), key=lambda dim: -steps[dim])
    back = sorted(range(input.ndim), key=lambda dim: order[dim])
    return copied(shown.transpose(order)).transpose(back)


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    xp = namespace.xp

    @table.kernel()
    def flip(input: Any, dims: Shape) -> Any:
        return flipped(input, dims, lambda array: xp.array(array, order="C", copy=True))
