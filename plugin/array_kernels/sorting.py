"""Kernels that sort or search."""

from __future__ import annotations

from typing import Any

from tensorplug.core.device.dtypes import bfloat16, int64

from ..tables import KernelTable
from .namespace import ArrayNamespace


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    xp = namespace.xp
    index_type = namespace.native(int64)

    def zero_index() -> Any:
        return xp.zeros((), index_type)

    @table.kernel()
    def argsort(input: Any, dim: int, descending: bool) -> Any:
        if input.ndim == 0:
            return zero_index()
        if not descending:
            return xp.argsort(input, axis=dim, kind="stable")
        # Turned around twice: the ascending order of the mirrored array keeps equal elements in
        # order.
        mirrored = xp.argsort(xp.flip(input, dim), axis=dim, kind="stable")
        return (input.shape[dim] - 1) - xp.flip(mirrored, dim)

    @table.kernel()
    def sort(input: Any, dim: int, descending: bool) -> tuple[Any, Any]:
        order = argsort(input, dim, descending)
        return xp.take_along_axis(input, order, axis=dim), order

    @table.kernel()
    def topk(input: Any, k: int, dim: int, largest: bool) -> tuple[Any, Any]:
        size = input.shape[dim]
        take = [slice(None)] * input.ndim
        take[dim] = slice(size - k, size) if largest else slice(0, k)
        if k == 0 or 4 * k > size:
            take[dim] = slice(0, k)
            order = xp.ascontiguousarray(argsort(input, dim, largest)[tuple(take)])
            return xp.take_along_axis(input, order, axis=dim), order
        # A partition finds the k best in linear time; only they are sorted.
        part = xp.argpartition(input, size - k if largest else k - 1, axis=dim)[tuple(take)]
        part = xp.sort(part, axis=dim)
        best = xp.take_along_axis(input, part, axis=dim)
        order = argsort(best, dim, largest)
        return xp.take_along_axis(best, order, axis=dim), xp.take_along_axis(part, order, axis=dim)

    @table.kernel()
    def nonzero(input: Any) -> Any:
        if input.ndim == 0:
            return xp.zeros((int(input != 0), 0), index_type)
        return xp.stack(xp.nonzero(input), axis=1)

    for function in (argsort, sort, topk):
        table.add(function.__name__, namespace.through_float32(function), dtypes=(bfloat16,))
