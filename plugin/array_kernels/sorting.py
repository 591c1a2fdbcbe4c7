"""Kernels that sort or search."""

from __future__ import annotations

from typing import Any

from tensorplug.core.dtypes import bfloat16, int64

from ..tables import KernelTable
from .namespace import ArrayNamespace


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    xp = namespace.xp
    index_type = namespace.native(int64)

    def zero_index() -> Any:
        return xp.zeros((), index_type)

    @table.kernel()
    def _order(input: Any, dim: int, descending: bool) -> Any:
        if input.ndim == 0:
            return zero_index()
        if not descending:
            return xp.argsort(input, axis=dim, kind="stable")
        # Turned around twice: the ascending order of the mirrored array keeps equal elements in
        # order.
        mirrored = xp.argsort(xp.flip(input, dim), axis=dim, kind="stable")
        return (input.shape[dim] - 1) - xp.flip(mirrored, dim)

    @table.kernel()
    def _top_places(input: Any, k: int, dim: int, largest: bool) -> Any:
        if input.ndim == 0:
            return zero_index()
        size = input.shape[dim]
        take = [slice(None)] * input.ndim
        take[dim] = slice(size - k, size) if largest else slice(0, k)
        if k == 0 or 4 * k > size:
            order = _order(input, dim, largest)
            take[dim] = slice(0, k)
            return order[tuple(take)]
        # A partition finds the k best in linear time; only they are sorted.
        part = xp.argpartition(input, size - k if largest else k - 1, axis=dim)[tuple(take)]
        part = xp.sort(part, axis=dim)
        best = xp.take_along_axis(input, part, axis=dim)
        return xp.take_along_axis(part, _order(best, dim, largest), axis=dim)

    @table.kernel()
    def _nonzero(input: Any) -> Any:
        if input.ndim == 0:
            return xp.zeros((int(input != 0), 0), index_type)
        return xp.stack(xp.nonzero(input), axis=1)

    for function in (_order, _top_places):
        table.add(function.__name__, namespace.through_float32(function), dtypes=(bfloat16,))
