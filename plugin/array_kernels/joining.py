"""Kernels that join arrays."""

from __future__ import annotations

from typing import Any

from ..tables import KernelTable
from .namespace import ArrayNamespace


def lies_channels_last(array: Any) -> bool:
    """Return whether torch takes an array for images whose channels lie inside, by its strides."""
    if array.ndim not in (4, 5) or not array.size or not array.strides[1]:
        return False
    reach = 0
    for dim in (1, *range(array.ndim - 1, 1, -1), 0):
        step = array.strides[dim]
        # Where the last step is the first, all dimensions between have one element: either order is right.
        if step < reach or (dim == 0 and reach == array.strides[1]):
            return False
        reach = step * array.shape[dim]
    return True


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    xp = namespace.xp

    @table.kernel()
    def cat(tensors: list[Any], dim: int) -> Any:
        # As in torch: row by row, or channels last where all are.
        if tensors[0].ndim < 4 or not all(lies_channels_last(array) for array in tensors):
            return xp.ascontiguousarray(xp.concatenate(tensors, dim))
        inside = {0: 0, 1: -1}.get(dim, dim - 1)
        moved = xp.concatenate([xp.moveaxis(array, 1, -1) for array in tensors], inside)
        return xp.moveaxis(xp.ascontiguousarray(moved), -1, 1)

    @table.kernel("stack")
    def stack(tensors: list[Any], dim: int) -> Any:
        shape = tensors[0].shape
        if dim == len(shape):
            return cat([tensor.reshape((*shape, 1)) for tensor in tensors], dim)
        return cat(tensors, dim).reshape((*shape[:dim], len(tensors), *shape[dim:]))

    @table.kernel()
    def matrices_along_diagonal(matrices: list[Any]) -> Any:
        heights = [matrix.shape[0] for matrix in matrices]
        widths = [matrix.shape[1] for matrix in matrices]
        result = xp.zeros((sum(heights), sum(widths)), matrices[0].dtype)
        row = column = 0
        for matrix, height, width in zip(matrices, heights, widths, strict=True):
            result[row : row + height, column : column + width] = matrix
            row += height
            column += width
        return result
