"""Kernels that show memory in another shape."""

from __future__ import annotations

from typing import Any

from tensorplug.core.shapes import Shape, as_shape

from ..tables import KernelTable
from .namespace import ArrayNamespace


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    xp = namespace.xp

    @table.kernel()
    def view(input: Any, shape: Shape) -> Any:
        return input.reshape(shape)

    @table.kernel()
    def permute(input: Any, dims: Shape) -> Any:
        return input.transpose(dims)

    @table.kernel()
    def expand(input: Any, shape: Shape) -> Any:
        if 0 in shape or input.shape == shape:
            # Nothing is repeated: the library's view would be read-only without need.
            return input[...] if input.shape == shape else xp.empty(shape, input.dtype)
        # What a library broadcasts is read-only, but where there is no element one may "write".
        return xp.broadcast_to(input, shape) if 0 not in shape else xp.empty(shape, input.dtype)

    # Of the composite, for replayed formulas, whose arrays may be strided otherwise than the first time.
    @table.kernel()
    def reshape(input: Any, sizes: tuple[Any, ...], shape: Any = None) -> Any:
        return input.reshape(as_shape(sizes if shape is None else (shape,), "reshape"))
