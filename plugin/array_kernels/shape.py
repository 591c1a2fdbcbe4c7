"""Kernels that show memory in another shape."""

from __future__ import annotations

from typing import Any

from tensorplug.core.tensor.shapes import Shape, as_shape

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
        if 0 in shape:
            return xp.empty(shape, input.dtype)  # without elements there is nothing to share
        view = xp.broadcast_to(input, shape)
        # The core refuses to write where elements share memory; one row of the view may be written.
        if not getattr(view.flags, "writeable", True) and input.flags.writeable:
            view.flags.writeable = True
        return view

    # Of the composite, for replayed formulas, whose arrays may be strided otherwise than the first time.
    @table.kernel()
    def reshape(input: Any, sizes: tuple[Any, ...], shape: Any = None) -> Any:
        return input.reshape(as_shape(sizes if shape is None else (shape,), "reshape"))
