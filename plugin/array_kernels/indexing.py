"""Kernels that read and write at positions."""

from __future__ import annotations

from typing import Any

from tensorplug.core.shapes import Shape

from ..tables import KernelTable
from .namespace import ArrayNamespace


def full_key(indices: list[Any]) -> tuple[Any, ...]:
    """Return index arrays and None (a whole dimension) as the library's key."""
    return tuple([slice(None) if item is None else item for item in indices])


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    xp = namespace.xp

    @table.kernel()
    def basic_index(input: Any, key: tuple[Any, ...]) -> Any:
        return input[(*key, ...)]  # the Ellipsis makes a view of a single element, too

    @table.kernel()
    def place(input: Any, shape: Shape, key: tuple[Any, ...]) -> Any:
        result = xp.zeros(shape, input.dtype)
        result[key] = input
        return result

    @table.kernel()
    def index(input: Any, indices: list[Any]) -> Any:
        try:
            if len(indices) == 1:
                return xp.take(input, indices[0], 0)
            return input[full_key(indices)]
        except IndexError as error:
            raise out_of_bounds(error) from None

    def index_put(
        input: Any, indices: list[Any], values: Any, accumulate: bool, out: Any = None
    ) -> Any:
        if out is None:
            out = xp.array(input, order="C", copy=True)
        elif out is not input:
            out[...] = input
        key = full_key(indices)
        try:
            if accumulate:
                xp.add.at(out, key, values)
            else:
                out[key] = values
        except IndexError as error:
            raise out_of_bounds(error) from None
        return out

    table.add("index_put", index_put, out=True)


def out_of_bounds(error: IndexError) -> IndexError:
    """Return the library's complaint in torch's words."""
    return IndexError(str(error).replace("axis", "dimension"))
